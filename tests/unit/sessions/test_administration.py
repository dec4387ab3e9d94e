"""Sessions are deleted and renamed by the agent's own program, or refused with the next step."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.sdk.installation import AgentInstallation, SessionCommands
from agent_mux.sessions.administration import delete_session, rename_session
from agent_mux.sessions.library import StoredSession

PROGRAM = """#!/bin/sh
[ "$1" = fail ] && { echo "no such session" >&2; exit 4; }
printf '%s|' "$@" > "$AMUX_TEST_CALLED"
"""


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredSession:
    write_session(tmp_path, "one", {"session": "one"}, {"prompt": "do one", "at": START})
    found = sessions_in(tmp_path).find("one")
    program = tmp_path / "program"
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("AMUX_TEST_PROGRAM", str(program))
    monkeypatch.setenv("AMUX_TEST_CALLED", str(tmp_path / "called"))
    commands = SessionCommands(
        delete=lambda session: ("delete", session), rename=lambda session, title: ("fail", session, title)
    )
    adapter = replace(
        found.adapter,
        executable_variable="AMUX_TEST_PROGRAM",
        installation=lambda: AgentInstallation(sessions=commands),
    )
    return found._replace(adapter=adapter)


def test_a_session_is_deleted_by_its_agent(known: StoredSession, tmp_path: Path) -> None:
    assert delete_session(known)[1:] == ("delete", "one")
    assert (tmp_path / "called").read_text("utf-8") == "delete|one|"


def test_a_failure_of_the_agent_is_reported(known: StoredSession) -> None:
    with pytest.raises(
        AgentMuxError, match=r"`program fail one New` failed \(exit code 4\): no such session"
    ) as caught:
        rename_session(known, "New")
    assert caught.value.code == "AGENT_CRASH"


@pytest.mark.parametrize("title", ["", " ", "-x", "a\nb", "x" * 201])
def test_a_title_that_cannot_be_passed_on_is_refused(known: StoredSession, title: str) -> None:
    with pytest.raises(ValidationError, match="printable characters"):
        rename_session(known, title)


def test_an_agent_without_the_command_is_refused_with_the_next_step(known: StoredSession) -> None:
    without = known._replace(adapter=replace(known.adapter, installation=AgentInstallation))
    with pytest.raises(CapabilityError, match="the session is stored in"):
        delete_session(without)
    with pytest.raises(CapabilityError, match="`amux sessions tag scripted:one TAG` marks the session here"):
        rename_session(without, "New")
