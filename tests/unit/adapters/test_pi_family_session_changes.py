"""Stored sessions of pi and omp are changed by requests in rpc mode."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.adapters.session_steps import SESSION, perform

from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
)
from agent_mux_adapters.omp.session_changes import SESSIONS as OMP
from agent_mux_adapters.pi.session_changes import SESSIONS as PI

SECOND = RewindRequest(checkpoint="u2", previous="u1", scope="conversation")
FAMILY = [
    pytest.param(PI, ("/agent", "--mode", "rpc", "--session", "/store/0af1.jsonl"), "fork", id="pi"),
    pytest.param(OMP, ("/agent", "--mode=rpc", "--no-title", "--resume=/store/0af1.jsonl"), "branch", id="omp"),
]
READY = {"type": "ready", "protocolVersion": 1}
NO_TOOLS = {"type": "extension_ui_request", "id": "get_state", "method": "notify"}


def change(commands: SessionCommands, name: str, *arguments: Any) -> SessionSteps[Any]:
    command: Callable[..., SessionSteps[Any]] = getattr(commands, name)
    return command(SESSION, *arguments)


def done(kind: str, **data: Any) -> dict[str, Any]:
    return {"id": kind, "type": "response", "command": kind, "success": True, "data": data}


def failed(kind: str, error: str) -> dict[str, Any]:
    return {"id": kind, "type": "response", "command": kind, "success": False, "error": error}


@pytest.mark.parametrize(("commands", "argv", "branch"), FAMILY)
def test_a_session_is_renamed(commands: SessionCommands, argv: tuple[str, ...], branch: str) -> None:
    steps, _ = perform(change(commands, "rename", "New"), [READY, done("set_session_name")])
    assert steps == [argv, {"id": "set_session_name", "type": "set_session_name", "name": "New"}]


@pytest.mark.parametrize(("commands", "argv", "branch"), FAMILY)
def test_a_rewind_stores_the_part_before_as_a_new_session(
    commands: SessionCommands, argv: tuple[str, ...], branch: str
) -> None:
    answers = [
        READY, NO_TOOLS, done("get_state", sessionId="0af1"), done(branch, cancelled=False),
        done("get_state", sessionId="1bf2"),
    ]  # fmt: skip
    steps, result = perform(change(commands, "rewind", SECOND), answers)
    assert steps[0] == argv
    assert steps[2] == {"id": branch, "type": branch, "entryId": "u2"}
    assert result == RewindOutcome(session_id="1bf2")
    assert commands.rewind_creates_session


@pytest.mark.parametrize(("commands", "argv", "branch"), FAMILY)
def test_a_refused_rewind_has_the_reason(commands: SessionCommands, argv: tuple[str, ...], branch: str) -> None:
    opened = done("get_state", sessionId="0af1")
    for answers, reason in (
        ([opened, failed(branch, "Invalid entry ID")], f"{branch}: Invalid entry ID"),
        ([opened, done(branch, cancelled=True)], "an extension cancelled it"),
        ([opened, done(branch, cancelled=False), opened], "it opened no new session"),
    ):
        with pytest.raises(SessionChangeRefusedError, match=reason):
            perform(change(commands, "rewind", SECOND), answers)


def test_omp_deletes_the_session_that_is_open_and_leaves_it() -> None:
    answers = [READY, done("get_state", sessionId="0af1"), done("prompt", agentInvoked=False), done("new_session")]
    steps, _ = perform(change(OMP, "delete"), answers)
    assert steps[2] == {"id": "prompt", "type": "prompt", "message": "/session delete"}
    assert steps[3]["type"] == "new_session"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([done("get_state", sessionId="other")], "another session"),
        ([done("get_state", sessionId="0af1"), done("prompt", agentInvoked=True)], "no command `/session delete`"),
    ],
)
def test_omp_deletes_nothing_else(answers: list[Any], reason: str) -> None:
    with pytest.raises(SessionChangeRefusedError, match=reason):
        perform(change(OMP, "delete"), answers)
