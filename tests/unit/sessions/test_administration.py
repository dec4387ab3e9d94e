"""Sessions are deleted and renamed by the agent's own program, or refused with the next step."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.session_changes import (
    ReceiveMessage,
    RewindOutcome,
    RewindRequest,
    SendMessage,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
    run_words,
)
from agent_mux.sessions.administration import delete_session, rename_session, rewind_session
from agent_mux.sessions.library import StoredSession

PROGRAM = r"""#!/bin/sh
[ "$1" = serve ] && { read -r line; echo "starting"; printf '{"asked": %s}\n' "$line"; read -r end; exit 0; }
[ "$1" = fail ] && { echo "no such session" >&2; exit 4; }
printf '%s|' "$@" > "$AMUX_TEST_CALLED"
"""


def ask_to_rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    """Ask a program that echoes the request."""
    yield StartProgram((session.executable, "serve" if request.scope == "both" else "leave"))
    yield SendMessage({"to": request.checkpoint})
    answer = yield ReceiveMessage()
    if request.checkpoint == "refused":
        raise SessionChangeRefusedError("it is busy")
    return RewindOutcome(session_id=answer["asked"]["to"])


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
        delete=lambda session: run_words(session, "delete", session.native_id),
        rename=lambda session, title: run_words(session, "fail", session.native_id, title),
        rewind=ask_to_rewind,
    )
    adapter = replace(
        found.adapter,
        executable_variable="AMUX_TEST_PROGRAM",
        installation=lambda: AgentInstallation(sessions=commands),
    )
    return found._replace(adapter=adapter)


def test_a_session_is_deleted_by_its_agent(known: StoredSession, tmp_path: Path) -> None:
    delete_session(known)
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


def test_messages_are_exchanged_with_the_program_of_the_agent(known: StoredSession) -> None:
    done = rewind_session(known, RewindRequest(checkpoint="p1", previous=None, scope="both"))
    assert done.session_id == "p1"


def test_a_refusal_of_the_agent_is_reported(known: StoredSession) -> None:
    with pytest.raises(AgentMuxError, match="scripted did not change scripted:one: it is busy"):
        rewind_session(known, RewindRequest(checkpoint="refused", previous=None, scope="both"))


def test_a_program_that_ends_without_an_answer_is_reported(known: StoredSession) -> None:
    with pytest.raises(AgentMuxError, match="`program` ended before it answered") as caught:
        rewind_session(known, RewindRequest(checkpoint="p1", previous=None, scope="files"))
    assert caught.value.code == "AGENT_CRASH"
