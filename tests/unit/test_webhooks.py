"""Signatures of webhooks, with the example that the implementations of the specification share."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mux import webhooks
from agent_mux.errors import AgentMuxError

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the published example
ID, TIME, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
OTHER = "whsec_" + "QUJD" * 8
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def headers(**other: str) -> dict[str, str]:
    text = {"webhook-id": ID, "webhook-timestamp": str(TIME), "webhook-signature": SIGNATURE}
    return text | {name.replace("_", "-"): value for name, value in other.items()}


def test_the_published_example_is_signed_and_verified() -> None:
    assert webhooks.sign([SECRET], ID, TIME, BODY) == SIGNATURE
    assert webhooks.verify(headers(), BODY, SECRET, now=TIME) == {"test": 2432232314}
    shouted = {name.upper(): value for name, value in headers().items()}
    assert webhooks.verify(shouted, BODY, SECRET, now=TIME) == {"test": 2432232314}


def test_one_good_signature_among_several_is_enough() -> None:
    new = webhooks.new_secret()
    both = webhooks.sign([new, SECRET], ID, TIME, BODY)
    for secret in (new, SECRET):
        assert webhooks.verify(headers(webhook_signature="v1a,xyz " + both), BODY, secret, now=TIME)


@pytest.mark.parametrize(
    ("changed", "body", "secret", "now"),
    [
        ({}, BODY + b" ", SECRET, TIME),
        ({}, BODY, OTHER, TIME),
        ({"webhook_id": "msg_other"}, BODY, SECRET, TIME),
        ({"webhook_timestamp": str(TIME + 1)}, BODY, SECRET, TIME),
        ({}, BODY, SECRET, TIME + 301),
        ({}, BODY, SECRET, TIME - 301),
        ({"webhook_timestamp": "soon"}, BODY, SECRET, TIME),
        ({"webhook_timestamp": "٣"}, BODY, SECRET, TIME),
        ({"webhook_id": ""}, BODY, SECRET, TIME),
        ({"webhook_signature": ""}, BODY, SECRET, TIME),
        ({"webhook_signature": SIGNATURE.replace("v1", "v2")}, BODY, SECRET, TIME),
        ({"webhook_signature": "v1,"}, BODY, SECRET, TIME),
        ({"webhook_signature": "v1,é"}, BODY, SECRET, TIME),
    ],
)
def test_what_cannot_be_trusted_is_refused(changed: Any, body: bytes, secret: str, now: int) -> None:
    with pytest.raises(AgentMuxError) as refused:
        webhooks.verify(headers(**changed), body, secret, now=now)
    assert refused.value.code == "UNAUTHENTICATED"


@given(size=st.integers(0, 100))
def test_a_secret_has_24_to_64_bytes(size: int) -> None:
    secret = "whsec_" + base64.b64encode(bytes(size)).decode()
    if 24 <= size <= 64:
        assert webhooks.key_of(secret) == bytes(size)
    else:
        with pytest.raises(AgentMuxError):
            webhooks.key_of(secret)


@pytest.mark.parametrize("secret", ["", "whsec_", SECRET.removeprefix("whsec_"), SECRET + "!", "whsec_" + "a" * 33])
def test_an_invalid_secret_is_not_repeated(secret: str) -> None:
    with pytest.raises(AgentMuxError) as wrong:
        webhooks.key_of(secret)
    assert secret not in str(wrong.value) or secret in {"", "whsec_"}


def test_new_secrets_are_secrets_and_differ() -> None:
    made = {webhooks.new_secret() for _ in range(10)}
    assert len(made) == 10
    assert all(len(webhooks.key_of(secret)) == 32 for secret in made)
