"""`amux tokens`, and the announcement of tokens by `amux serve`."""

import json

from tests.unit.cli.conftest import Amux


def test_a_token_is_printed_once_and_alone(amux: Amux) -> None:
    made = amux("tokens", "create", "ci", "--scope", "run", "--expires", "90d")
    assert made.code == 0, made.err
    assert made.out.startswith("amux_")
    assert made.out.count("\n") == 1
    token = made.out.strip()
    assert token not in made.err
    listed = amux("tokens", "list")
    assert "ci" in listed.out
    assert token.rpartition("_")[2] not in listed.out + listed.err


def test_a_name_is_taken_until_it_is_forgotten(amux: Amux) -> None:
    assert amux("tokens", "create", "ci", "--scope", "run").code == 0
    again = amux("tokens", "create", "ci", "--scope", "run")
    assert (again.code, again.out) == (2, "")
    assert amux("tokens", "revoke", "ci").code == 0
    assert amux("tokens", "create", "ci", "--scope", "run").code == 2
    assert json.loads(amux("tokens", "list", "--json").out)["data"][0]["state"] == "revoked"
    assert amux("tokens", "rotate", "ci").code == 1, "what is revoked stays so"
    assert amux("tokens", "revoke", "ci", "--forget").code == 0
    assert json.loads(amux("tokens", "list", "--json").out)["data"] == []
    assert amux("tokens", "create", "ci", "--scope", "run").code == 0


def test_rotating_keeps_the_id_and_reports_the_grace_period(amux: Amux) -> None:
    token = json.loads(amux("tokens", "create", "ci", "--scope", "read", "--scope", "run", "--json").out)["data"][
        "token"
    ]
    rotated = amux("tokens", "rotate", "ci", "--grace", "1h").out.strip()
    assert rotated.split("_")[:2] == token.split("_")[:2]
    assert rotated != token
    [row] = json.loads(amux("tokens", "list", "--json").out)["data"]
    assert (row["name"], row["scopes"], row["state"]) == ("ci", ["read", "run"], "valid")
    assert "previousUntil" in row
    assert amux("tokens", "rotate", "ci", "--grace", "0m").code == 0
    assert "previousUntil" not in json.loads(amux("tokens", "list", "--json").out)["data"][0]


def test_an_unknown_token_is_an_error(amux: Amux) -> None:
    for words in (("rotate", "nobody"), ("revoke", "nobody")):
        done = amux("token", *words)
        assert (
            done.code,
            done.err.startswith("error: no token has the name or id 'nobody'; existing tokens: none"),
        ) == (
            20,
            True,
        )
