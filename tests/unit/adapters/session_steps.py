"""Perform the steps of a change of a stored session with scripted answers, and record them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent_mux.sdk.session_changes import (
    ProgramOutput,
    ReceiveMessage,
    RunProgram,
    SendMessage,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
)

SESSION = StoredSessionRef(
    executable="/agent", native_id="0af1", path=Path("/store/0af1.jsonl"), cwd="/w", has_own_cwd=True
)


def perform(steps: SessionSteps[Any], answers: Iterable[Any]) -> tuple[list[Any], Any]:
    """Return the started commands and sent messages, and the result. `answers`: messages, or outputs of programs."""
    answers, done, answer = iter(answers), [], None
    try:
        while True:
            match step := steps.send(answer):
                case RunProgram(argv) | StartProgram(argv):
                    done.append(argv)
                case SendMessage(message):
                    done.append(message)
                case ReceiveMessage():
                    pass
            answer = next(answers) if isinstance(step, RunProgram | ReceiveMessage) else None
    except StopIteration as end:
        assert list(answers) == []
        return done, end.value


def printed(stdout: str = "", stderr: str = "") -> ProgramOutput:
    return ProgramOutput(stdout, stderr)
