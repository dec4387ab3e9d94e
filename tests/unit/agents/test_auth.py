"""Credentials: found in variables and files, in the order in which the agent reads them."""

from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import CapabilityError
from agent_mux.agents.auth import Auth
from agent_mux.sdk.installation import AgentInstallation

NOW = 1_000_000


@pytest.mark.parametrize(
    ("environ", "token", "status", "method"),
    [
        ({}, None, "unauthenticated", None),
        ({"WOMBAT_KEY": ""}, None, "unauthenticated", None),
        ({"WOMBAT_KEY": "k"}, None, "authenticated", "key"),
        ({"WOMBAT_OTHER_KEY": "k"}, None, "authenticated", "key"),
        ({}, NOW + 1, "authenticated", "login"),
        ({}, NOW, "expired", "login"),
        ({"WOMBAT_KEY": "k"}, NOW, "authenticated", "key"),
        ({"WOMBAT_KEYRING": "the keyring"}, None, "unknown", None),
    ],
)
def test_status_follows_variables_and_files(
    tmp_path: Path, environ: dict[str, str], token: int | None, status: str, method: str | None
) -> None:
    path = tmp_path / "home" / ".wombat" / "token"
    if token is not None:
        path.parent.mkdir(parents=True)
        path.write_text(str(token), "utf-8")
    state = Auth(sample_resolver(tmp_path, **environ)).check(AGENT, now_ms=NOW)
    assert (state.agent, state.status, state.method) == (AGENT, status, method)
    if method == "login":
        assert (state.where, state.expires_at) == (str(path), token)


def test_unreadable_file_gives_status_unknown(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".wombat" / "token"
    path.parent.mkdir(parents=True)
    path.write_text("nonsense", "utf-8")
    [state] = Auth(sample_resolver(tmp_path)).check_all(now_ms=NOW)
    assert state.status == "unknown"
    assert state.problem is not None
    assert "a login: invalid literal" in state.problem


def test_setup_returns_the_steps(tmp_path: Path) -> None:
    steps = Auth(sample_resolver(tmp_path)).setup(AGENT)
    assert [step.command for step in steps] == [("login",), ()]


def test_agent_without_auth_raises_capability_error(tmp_path: Path) -> None:
    nobody = Auth(sample_resolver(tmp_path, AgentInstallation()))
    assert nobody.check_all() == []
    for call in (nobody.check, nobody.setup):
        with pytest.raises(CapabilityError):
            call(AGENT)
