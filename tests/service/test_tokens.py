"""Authentication and scopes, over real sockets."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from tests.service.keys import bearing, make_token, with_keyring
from tests.service.serving import Serving, serving

from agent_mux.errors import AgentMuxError
from agent_mux.service.security.authenticator import CACHE_TIME
from agent_mux.service.security.keyring import Keyring
from agent_mux.service.security.tokens import new_token
from agent_mux.service.service import open_database, open_service
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.tokens import TokenStore

DEMO = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
TRIES = 200
"""Of something that happens within a second."""


class Guarded(NamedTuple):
    server: Serving
    directory: Path
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    tokens = {scope: make_token(directory, f"{scope}er", scope) for scope in ("read", "run", "admin")}
    tokens["expired"] = make_token(directory, "expired", "admin", expires_at=1)
    tokens["revoked"] = make_token(directory, "revoked", "admin")
    with_keyring(directory, lambda keyring: keyring.revoke("revoked"))
    with serving(directory) as server:
        yield Guarded(server, directory, tokens)


def get(guarded: Guarded, token: str | None, path: str = "/v1/runs") -> httpx.Response:
    return guarded.server.http.get(path, headers={} if token is None else bearing(token))


@pytest.mark.slow
def test_everything_but_health_needs_a_token(guarded: Guarded) -> None:
    assert get(guarded, None, "/health").status_code == 200
    assert get(guarded, None, "/ready").status_code == 200
    for path in guarded.server.http.get("/openapi.json", headers=bearing(guarded.tokens["read"])).json()["paths"]:
        if path not in {"/health", "/ready"}:
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                answer = guarded.server.http.request(method, path.replace("{run_id}", "0" * 26))
                assert answer.status_code == 401, (method, path)
    assert get(guarded, None, "/no/such/path").status_code == 401


def test_refusals_of_tokens_do_not_differ(guarded: Guarded) -> None:
    good = guarded.tokens["read"]
    wrong = (None, "x", str(new_token()), good[:-1] + ("a" if good[-1] != "a" else "b"), good.swapcase())
    answers = [get(guarded, token) for token in (*wrong, guarded.tokens["expired"], guarded.tokens["revoked"])]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert get(guarded, good).status_code == 200


def test_two_tokens_at_once_are_none(guarded: Guarded) -> None:
    both = [("authorization", f"Bearer {guarded.tokens[one]}") for one in ("read", "run")]
    assert guarded.server.http.get("/v1/runs", headers=both).status_code == 401


@pytest.mark.parametrize(("scope", "reads", "runs"), [("read", 200, 403), ("run", 200, 201), ("admin", 200, 201)])
def test_scopes_limit_tokens(guarded: Guarded, scope: str, reads: int, runs: int) -> None:
    assert get(guarded, guarded.tokens[scope]).status_code == reads
    answer = guarded.server.http.post("/v1/runs", json=DEMO, headers=bearing(guarded.tokens[scope]))
    assert answer.status_code == runs, answer.text
    if runs == 201:
        assert answer.json()["owner"] == f"{scope}er"
    else:
        assert (answer.json()["code"], "run" in answer.json()["detail"]) == ("FORBIDDEN", True)


def test_owners_have_keys_of_their_own(guarded: Guarded) -> None:
    body: list[Any] = []
    for scope in ("run", "admin", "run"):
        headers = {**bearing(guarded.tokens[scope]), "idempotency-key": "same"}
        body.append(guarded.server.http.post("/v1/runs", json=DEMO, headers=headers).json()["runId"])
    assert body[0] == body[2] != body[1]


def test_no_secret_of_a_token_is_at_rest(guarded: Guarded) -> None:
    stored = b"".join(path.read_bytes() for path in (guarded.directory / "service").iterdir())
    for token in guarded.tokens.values():
        _, token_id, secret = token.split("_")
        assert token_id.encode() in stored
        assert secret.encode() not in stored


def test_use_is_noted(guarded: Guarded) -> None:
    get(guarded, guarded.tokens["read"])
    for _ in range(TRIES):
        row = next(
            row for row in with_keyring(guarded.directory, lambda keyring: keyring.list()) if row.name == "reader"
        )
        if row.last_used_at is not None:
            return
    pytest.fail("it was not written down")


def eventually(served: Serving, token: str, status: int) -> bool:
    """The service takes notice: it looks every `FRESH` seconds."""
    assert CACHE_TIME <= 1.0
    with httpx.Client(base_url=served.url, headers=bearing(token), timeout=30) as client:
        return any(client.get("/v1/runs").status_code == status for _ in range(TRIES * 10))


@pytest.mark.slow
def test_a_running_service_refuses_a_revoked_token(tmp_path: Path) -> None:
    token, other = make_token(tmp_path, "ci", "run"), make_token(tmp_path, "other", "read")
    with serving(tmp_path) as served:
        assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200
        with_keyring(tmp_path, lambda keyring: keyring.revoke("ci"))
        assert eventually(served, token, 401)
        with_keyring(tmp_path, lambda keyring: keyring.revoke("other"))
        assert eventually(served, other, 401)
        assert served.http.get("/v1/runs").status_code == 401, "the last token being revoked opens nothing"


@pytest.mark.slow
def test_the_secret_of_before_is_good_for_the_grace_time(tmp_path: Path) -> None:
    old = make_token(tmp_path, "ci", "run")
    new = str(with_keyring(tmp_path, lambda keyring: keyring.rotate("ci", grace_ms=3_600_000)))
    with serving(tmp_path) as served:
        for token in (old, new):
            assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200
        newest = str(with_keyring(tmp_path, lambda keyring: keyring.rotate("ci", grace_ms=0)))
        assert eventually(served, newest, 200)
        for token in (old, new):
            assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 401


@pytest.mark.slow
def test_a_service_without_tokens_is_closed_by_the_first_one(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.http.get("/v1/runs").status_code == 200
        token = make_token(tmp_path, "first", "read")
        assert eventually(served, "none", 401)
        assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104  # it is refused
def test_other_addresses_are_not_served_without_a_token(tmp_path: Path, host: str) -> None:
    async def opening() -> None:
        async with open_service(ServiceSettings(config_dir=tmp_path, host=host)):
            pass

    with pytest.raises(AgentMuxError, match="`amux tokens create NAME --scope run`") as refused:
        anyio.run(opening)
    assert refused.value.code == "CONFIG_ERROR"
    make_token(tmp_path, "ci", "run")
    with_keyring(tmp_path, lambda keyring: keyring.revoke("ci"))
    with pytest.raises(AgentMuxError, match="no token is valid"):  # one that is revoked is none
        anyio.run(opening)
    make_token(tmp_path, "other", "read")
    anyio.run(opening)


@pytest.mark.slow
def test_an_address_for_others_is_served_with_a_token(tmp_path: Path) -> None:
    token = make_token(tmp_path, "ci", "read")
    with serving(tmp_path, host="0.0.0.0") as served:  # noqa: S104  # it is what is tested
        port = served.url.rpartition(":")[2]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            assert client.get("/v1/runs").status_code == 401
            assert client.get("/v1/runs", headers=bearing(token)).status_code == 200
            with_keyring(tmp_path, lambda keyring: keyring.forget("ci"))
            assert any(client.get("/v1/runs", headers=bearing(token)).status_code == 401 for _ in range(TRIES * 10))
            assert client.get("/v1/runs").status_code == 401, "without any token it is open to nobody"


@pytest.mark.slow
def test_known_tokens_stay_valid_while_the_database_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = make_token(tmp_path, "ci", "read")
    with serving(tmp_path) as served:
        assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200
        authenticator = served.service.authenticator

        async def away() -> Any:
            raise AgentMuxError("UNAVAILABLE", "away")

        monkeypatch.setattr(authenticator._store, "all", away)
        monkeypatch.setattr(authenticator, "_read_at", authenticator._read_at - 2 * CACHE_TIME)
        assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200
        monkeypatch.setattr(authenticator, "_read_at", float("-inf"))
        answer = served.http.get("/v1/runs", headers=bearing(token))
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")


def test_the_database_of_tokens_is_private(tmp_path: Path) -> None:
    make_token(tmp_path, "ci", "read")
    path = tmp_path / "service" / "service.db"
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() >= [("0002_tokens",)]


# -- a service that needs a token


def opening(directory: Path, **chosen: Any) -> None:
    """Open a service and close it. Raises what a start raises."""

    async def work() -> None:
        async with open_service(ServiceSettings(config_dir=directory, **chosen)):
            pass

    anyio.run(work)


def mark_of(directory: Path) -> Path:
    return directory / "service" / "needs-token"


def without_database(directory: Path) -> None:
    for path in (directory / "service").glob("service.db*"):
        path.unlink()


def refused_for_its_mark(directory: Path, **chosen: Any) -> None:
    with pytest.raises(AgentMuxError) as caught:
        opening(directory, **chosen)
    assert caught.value.code == "CONFIG_ERROR"
    for words in (str(mark_of(directory)), "AGENT_MUX_DATABASE_URL", "amux tokens create", "amux tokens allow-none"):
        assert words in caught.value.message


@pytest.mark.parametrize("has_run", [True, False])
def test_a_service_that_had_a_token_does_not_open_without_one(tmp_path: Path, has_run: bool) -> None:
    make_token(tmp_path, "ci", "run")
    if has_run:
        opening(tmp_path)
    assert mark_of(tmp_path).stat().st_mode & 0o777 == 0o600
    without_database(tmp_path)
    refused_for_its_mark(tmp_path)
    refused_for_its_mark(tmp_path, database=f"sqlite:///{tmp_path}/other.db")
    refused_for_its_mark(tmp_path, allow_unauthenticated=True)


def test_tokens_of_a_shared_database_mark_each_directory(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    opening(tmp_path / "one", database=url)

    async def create() -> None:
        async with open_database(ServiceSettings(config_dir=tmp_path / "two", database=url)) as database:
            await Keyring(TokenStore(database)).create("ci", ["run"])

    anyio.run(create)
    assert not mark_of(tmp_path / "one").exists()
    opening(tmp_path / "one", database=url)
    refused_for_its_mark(tmp_path / "one")


@pytest.mark.slow
def test_a_running_service_whose_tokens_vanish_stays_closed(tmp_path: Path) -> None:
    token = make_token(tmp_path, "ci", "read")
    with serving(tmp_path) as served:
        assert served.http.get("/v1/runs", headers=bearing(token)).status_code == 200
        with closing(sqlite3.connect(tmp_path / "service" / "service.db")) as database, database:
            database.execute("DELETE FROM tokens")
        mark_of(tmp_path).unlink()
        assert eventually(served, token, 401)
        assert served.http.get("/v1/runs").status_code == 401
        assert served.http.get("/health").status_code == 200


@pytest.mark.slow
def test_the_first_token_of_a_running_service_marks_its_directory(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        make_token(tmp_path, "first", "read")
        mark_of(tmp_path).unlink()
        assert eventually(served, "none", 401)
        assert mark_of(tmp_path).exists()


def test_only_a_named_command_opens_a_service_again(tmp_path: Path) -> None:
    make_token(tmp_path, "ci", "run")
    with pytest.raises(AgentMuxError, match="--forget") as caught:
        with_keyring(tmp_path, lambda keyring: keyring.allow_none())
    assert caught.value.code == "INVALID_STATE_TRANSITION"
    with_keyring(tmp_path, lambda keyring: keyring.forget("ci"))
    refused_for_its_mark(tmp_path)
    with_keyring(tmp_path, lambda keyring: keyring.allow_none())
    opening(tmp_path)


def test_a_proxy_for_others_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match=r"--allow-host amux\.example") as caught:
        opening(tmp_path, allowed_hosts=("amux.example",))
    assert caught.value.code == "CONFIG_ERROR"
    assert "--allow-unauthenticated" in caught.value.message
    opening(tmp_path, allowed_hosts=("amux.example",), allow_unauthenticated=True)
    make_token(tmp_path, "ci", "run")
    opening(tmp_path, allowed_hosts=("amux.example",))


@pytest.mark.slow
def test_an_option_lets_everybody_in_until_there_is_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, allowed_hosts=("amux.example",), allow_unauthenticated=True) as served:
        assert served.http.get("/v1/runs", headers={"host": "amux.example"}).status_code == 200
        make_token(tmp_path, "ci", "run")
        assert eventually(served, "none", 401)
