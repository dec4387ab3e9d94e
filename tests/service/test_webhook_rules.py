"""Permitted addresses and retry delays, without a server."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import anyio
import pytest
from tests.service.receiver import receiving

from agent_mux.service.store.webhooks import DeliveryRow, WebhookRow
from agent_mux.service.webhooks import delivery
from agent_mux.service.webhooks.delivery import attempt_update
from agent_mux.service.webhooks.sender import (
    AddressRefusedError,
    AttemptResult,
    WebhookSender,
    address_refusal,
    addresses_for,
    retry_after,
)
from agent_mux.webhooks import new_secret

NEVER = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "224.0.0.1",
    "ff02::1", "0.0.0.0", "::", "240.0.0.1", "255.255.255.255", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",  # noqa: S104
    "2002:a9fe:a9fe::1", "::169.254.169.254",
]  # fmt: skip
PRIVATE = [
    "127.0.0.1", "127.8.8.8", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "fc00::1", "fd12:3456::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
    "192.0.2.1", "198.18.0.1", "::127.0.0.1",
]  # fmt: skip
PUBLIC_PATHS = ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_never_sent_to(address: str) -> None:
    assert address_refusal(address, allow_private=False)
    assert address_refusal(address, allow_private=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_permitted_where_allowed(address: str) -> None:
    assert address_refusal(address, allow_private=False)
    assert address_refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", PUBLIC_PATHS)
def test_public_addresses_are_sent_to(address: str) -> None:
    assert address_refusal(address, allow_private=False) is None


class Names:
    """A name server with a different answer each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        return self.answers.pop(0)


def test_only_the_addresses_that_may_be_are_left_of_a_name() -> None:
    async def look(names: Names) -> list[str]:
        return await addresses_for("a.example", 80, allow_private=False, resolver=names)

    assert anyio.run(look, Names(["127.0.0.1", "8.8.8.8", "10.0.0.1"])) == ["8.8.8.8"]
    for nothing in ([], ["127.0.0.1"], ["::1", "169.254.169.254"]):
        with pytest.raises(AddressRefusedError):
            anyio.run(look, Names(nothing))


def test_a_name_is_looked_up_once_and_never_by_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the second answer would be this machine."""
    connected: list[str] = []

    async def connect(remote_host: str, **kwargs: object) -> object:
        connected.append(remote_host)
        raise OSError("nobody is there")

    monkeypatch.setattr("anyio.connect_tcp", connect)
    names = Names(["8.8.8.8", "1.1.1.1"], ["127.0.0.1"])
    sender = WebhookSender(allow_private=False, resolver=names)
    answer = anyio.run(sender.send, "https://rebind.example/hook", [new_secret()], "msg_1", b"{}")
    assert connected == ["8.8.8.8", "1.1.1.1"]
    assert answer.status is None
    assert names.answers == [["127.0.0.1"]]


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("http://127.0.0.1:1/", True),
        ("http://localhost:1/", True),
        ("http://0x7f.1:1/", True),
        ("http://2130706433:1/", True),
        ("http://[::ffff:127.0.0.1]:1/", True),
        ("http://" + "a" * 300 + "/", False),
    ],
)
def test_whatever_a_host_is_called_no_message_goes_to_this_machine(url: str, is_refused: bool) -> None:
    answer = anyio.run(WebhookSender(allow_private=False).send, url, [new_secret()], "msg_1", b"{}")
    assert (answer.status, answer.is_refused) == (None, is_refused)
    assert answer.error


def test_tls_is_checked_for_the_name_and_not_for_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate, both = tmp_path / "key", tmp_path / "certificate", tmp_path / "both"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*make, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    with receiving(both) as receiver:
        send = ("msg_1", b"{}")
        stranger = anyio.run(WebhookSender(allow_private=True).send, receiver.url, [new_secret()], *send)
        assert stranger.status is None
        assert "CERTIFICATE_VERIFY_FAILED" in str(stranger.error)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusting = WebhookSender(allow_private=True)
        assert anyio.run(trusting.send, receiver.url, [new_secret()], *send).status == 204
        (message,) = receiver.messages
        assert message.headers["host"] == receiver.url.removeprefix("https://").removesuffix("/hook")
        assert receiver.names[-1] == "localhost"
        other = receiver.url.replace("localhost", "127.0.0.1")
        assert anyio.run(trusting.send, other, [new_secret()], *send).status is None


# -- again


def row(attempts: int) -> DeliveryRow:
    return DeliveryRow(delivery_id="msg_1", webhook_id="W", created_at=0, type="t", body="{}", attempts=attempts)


def test_a_message_is_tried_eight_times_in_about_a_day() -> None:
    delays = [delivery.retry_delay(number, 0.0) for number in range(1, 9)]
    assert delays[-1] is None
    waits = [delay for delay in delays if delay is not None]
    assert len(waits) == 7
    assert waits == sorted(waits)
    assert 20 * 3600 < sum(waits) < 30 * 3600
    assert all(wait <= (delivery.retry_delay(n, 1.0) or 0) <= wait * 1.2 for n, wait in enumerate(waits, 1))


@pytest.mark.parametrize(
    ("answer", "attempts", "state", "outcome"),
    [
        (AttemptResult(200), 0, "delivered", "delivered"),
        (AttemptResult(204), 7, "delivered", "delivered"),
        (AttemptResult(500, "x"), 0, None, "retry"),
        (AttemptResult(302, "x"), 0, None, "retry"),
        (AttemptResult(404, "x"), 0, None, "retry"),
        (AttemptResult(None, "x"), 6, None, "retry"),
        (AttemptResult(None, "x", is_refused=True), 0, None, "refused"),
        (AttemptResult(500, "x"), 7, "failed", "given_up"),
        (AttemptResult(410, "x"), 0, "failed", "gone"),
    ],
)
def test_what_becomes_of_an_attempt(answer: AttemptResult, attempts: int, state: str | None, outcome: str) -> None:
    values, data = attempt_update(row(attempts), answer, 1000, 0.5)
    assert (values.get("state"), data, values["attempts"]) == (state, outcome, attempts + 1)
    assert ("next_at" in values) == (state is None)


def test_retry_after_delays_the_next_attempt() -> None:
    asked = retry_after(503, {"retry-after": "120"}, now=0)
    assert attempt_update(row(0), AttemptResult(503, "x", asked), 1000, 0.0)[0]["next_at"] == 121_000
    when = format_datetime(datetime.fromtimestamp(600, UTC), usegmt=True)
    assert retry_after(429, {"retry-after": when}, now=0) == 600
    assert retry_after(429, {"retry-after": when}, now=700) == 0
    assert retry_after(500, {"retry-after": "120"}, now=0) is None
    for nonsense in ("soon", "-5", "", "1e9", "٣"):
        assert retry_after(503, {"retry-after": nonsense}, now=0) is None
    longest = attempt_update(row(0), AttemptResult(503, "x", 10.0**9), 0, 0.0)[0]["next_at"]
    assert longest == delivery.LONGEST_WAIT * 1000


def test_the_secret_of_a_webhook_is_not_in_what_is_logged_of_it() -> None:
    secret = new_secret()
    webhook = WebhookRow(webhook_id="W", created_at=0, url="https://a.example/", events=(), secret=secret)
    assert secret not in f"{webhook} {webhook!r} {[webhook]}"
