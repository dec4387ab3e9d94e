"""The form of tokens, what is stored of them, and who may do what."""

import hmac
import re

import pytest

from agent_mux.redaction import redact_text
from agent_mux.service.security import tokens
from agent_mux.service.security.tokens import (
    LOCAL_CALLER,
    Caller,
    Scope,
    Token,
    bearer_token,
    matches_any,
    needed_scope,
    new_token,
    parse_scopes,
    read_token,
)


def test_a_token_can_be_read_back_and_is_new_each_time() -> None:
    made = [new_token() for _ in range(100)]
    assert len({token.secret for token in made}) == len({token.id for token in made}) == 100
    assert all(read_token(str(token)) == token for token in made)
    assert all(re.fullmatch(r"amux_[0-9a-f]{12}_[A-Za-z0-9]{43}", str(token)) for token in made)


def test_the_secret_is_not_printed_and_is_redacted() -> None:
    token = new_token()
    assert token.secret not in repr(token)
    assert token.secret not in token.hash
    assert token.secret not in redact_text(f"GET /?token={token} failed")
    assert f"amux_{token.id}_" in redact_text(str(token))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "amux__",
        "amux_0123456789ab_" + "a" * 42,
        "amux_0123456789ab_" + "a" * 44,
        "amux_0123456789aB_" + "a" * 43,
        "amuy_0123456789ab_" + "a" * 43,
        "amux_0123456789ab_" + "ä" * 43,
        " amux_0123456789ab_" + "a" * 43,
        "amux_0123456789ab_" + "a" * 43 + "\n",
    ],
)
def test_invalid_tokens_parse_as_none(text: str) -> None:
    assert read_token(text) is None


@pytest.mark.parametrize(("scheme", "is_good"), [("Bearer ", True), ("bearer ", True), ("Basic ", False), ("", False)])
def test_it_is_shown_as_a_bearer_token(scheme: str, is_good: bool) -> None:
    token = new_token()
    assert bearer_token(f"{scheme}{token}") == (token if is_good else None)


def test_only_its_own_hashes_match() -> None:
    token, other = new_token(), new_token()
    assert matches_any(token.secret, token.hash)
    assert matches_any(token.secret, other.hash, token.hash)
    assert not matches_any(token.secret, other.hash, None)
    assert not matches_any(token.secret, None, None)
    assert not matches_any(token.secret)


def test_all_comparisons_take_constant_time_also_for_unknown_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def noting(first: str, second: str) -> bool:
        compared.append((first, second))
        return compare(first, second)

    monkeypatch.setattr(tokens.hmac, "compare_digest", noting)
    token = Token("0" * 12, "a" * 43)
    matches_any(token.secret, token.hash, "b" * 64)
    matches_any(token.secret, None, None)
    assert len(compared) == 4, "the previous secret is compared, too, and an unknown one with something"
    assert {len(one) for pair in compared for one in pair} == {64}


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "/health", None),
        ("HEAD", "/ready", None),
        ("POST", "/health", "run"),
        ("GET", "/healthy", "read"),
        ("GET", "/v1/runs", "read"),
        ("HEAD", "/v1/runs", "read"),
        ("GET", "/metrics", "read"),
        ("GET", "/openapi.json", "read"),
        ("POST", "/v1/runs", "run"),
        ("DELETE", "/v1/runs/x", "run"),
        ("NEW-METHOD", "/v1/runs", "run"),
        ("GET", "/v1/runs/x/ws", "read"),
        ("GET", "/v1/webhooks", "admin"),
        ("POST", "/v1/webhooks/1", "admin"),
        ("GET", "/v1/webhooksish", "read"),
    ],
)
def test_what_a_request_needs(method: str, path: str, needed: Scope | None) -> None:
    assert needed_scope(method, path) == needed


def test_each_scope_includes_those_before_it() -> None:
    scopes: tuple[Scope, ...] = ("read", "run", "admin")
    may = {own: [needed for needed in scopes if Caller("x", frozenset({own})).may(needed)] for own in scopes}
    assert may == {"read": ["read"], "run": ["read", "run"], "admin": ["read", "run", "admin"]}
    assert not Caller("x", parse_scopes(["unheard-of"])).may("read")
    assert all(LOCAL_CALLER.may(scope) for scope in scopes)
