"""Stored sessions of Claude Code 2.1.330 that were rewound; see tests/stores/README.md."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sdk.session_changes import (
    ReceiveMessage,
    RewindRequest,
    SendMessage,
    SessionChangeRefusedError,
    StoredSessionRef,
)
from agent_mux.sessions.client import Sessions
from agent_mux_adapters.claude.session_changes import SESSIONS

RECORDED = Path(__file__).parents[3] / "stores" / "rewound" / "claude" / "2.1.330" / "home"
SECOND, FIRST = "1f1dc0bc-9385-4ca8-95b0-8319fd58e5a5", "b1ee2730-d9c2-4776-af18-3fd15f55eeb1"
"""Sessions that were rewound to the state before their second, and before their first prompt."""
PROJECT = Path(".claude", "projects", "-home-dev-project")


def prompts(sessions: Sessions, session: str) -> list[str]:
    return [message.text for message in sessions.get(session).messages if message.role == "user"]


def sessions_up_to_the_rewind(home: Path, session: str) -> Sessions:
    """Return the sessions as they were before the next prompt."""
    rows = (RECORDED / PROJECT / f"{session}.jsonl").read_text("utf-8").splitlines(keepends=True)
    [rewind] = [index for index, row in enumerate(rows) if '"rewound":true' in row]
    (home / PROJECT).mkdir(parents=True)
    (home / PROJECT / f"{session}.jsonl").write_text("".join(rows[: rewind + 1]), "utf-8")
    return Sessions(environ={"HOME": str(home)})


def test_the_removed_prompt_is_not_part_of_the_conversation() -> None:
    sessions = Sessions(environ={"HOME": str(RECORDED)})
    assert prompts(sessions, SECOND) == ["first question", "third question"]
    assert prompts(sessions, FIRST) == ["third question"]
    for session in (SECOND, FIRST):
        assert validate(list(sessions.events(session))) == []


def test_a_rewind_applies_before_the_next_prompt(tmp_path: Path) -> None:
    sessions = sessions_up_to_the_rewind(tmp_path, SECOND)
    assert prompts(sessions, SECOND) == ["first question"]
    assert sessions.get(SECOND).summary.cost.input_tokens == 400  # also of the removed calls


def test_a_session_without_prompts_is_listed_with_its_cost(tmp_path: Path) -> None:
    sessions = sessions_up_to_the_rewind(tmp_path, FIRST)
    [summary] = sessions.list()
    assert (summary.turn_count, summary.title, summary.cost.input_tokens) == (0, "", 200)
    assert summary.cwd == "/home/dev/project"  # so that `--continue` and `list --cwd` find it
    assert sessions.get(FIRST).messages == []
    assert sessions.checkpoints(FIRST) == ()


def test_each_prompt_is_a_checkpoint_whose_files_are_saved() -> None:
    found = Sessions(environ={"HOME": str(RECORDED)}).checkpoints(SECOND)
    assert [(one.id[:8], one.turn, one.prompt, one.has_files) for one in found] == [
        ("405f79cb", 0, "first question", True), ("d42c6c79", 1, "third question", True),
    ]  # fmt: skip


def test_a_refused_rewind_has_the_reason() -> None:
    assert SESSIONS.rewind is not None
    session = StoredSessionRef(executable="/claude", native_id=SECOND, path=Path("x"), cwd="/w", has_own_cwd=True)
    steps = SESSIONS.rewind(session, RewindRequest(checkpoint="p2", previous="p1", scope="files"))
    sent = [step for step in (next(steps), steps.send(None)) if isinstance(step, SendMessage)]
    assert sent[0].message["request"] == {"subtype": "initialize"}
    steps.send(None)
    asked = steps.send({"response": {"subtype": "success", "request_id": "initialize"}})
    assert asked == SendMessage({
        "type": "control_request", "request_id": "rewind_files",
        "request": {"subtype": "rewind_files", "user_message_id": "p2", "dry_run": True},
    })  # fmt: skip
    steps.send(None)
    answer = {"canRewind": False, "error": "no checkpoint"}
    with pytest.raises(SessionChangeRefusedError, match="rewind_files: no checkpoint"):
        steps.send({"response": {"subtype": "success", "request_id": "rewind_files", "response": answer}})


def test_restored_files_are_those_of_the_dry_run() -> None:
    assert SESSIONS.rewind is not None
    session = StoredSessionRef(executable="/claude", native_id=SECOND, path=Path("x"), cwd="/w", has_own_cwd=True)
    steps = SESSIONS.rewind(session, RewindRequest(checkpoint="p2", previous="p1", scope="files"))
    answers = {None: {}, True: {"canRewind": True, "filesChanged": ["/w/a"]}, False: {"canRewind": True}}
    outcome, dry_runs = perform_requests(steps, answers)
    assert dry_runs == [None, True, False]
    assert outcome.files == ("/w/a",)


def perform_requests(steps: Any, answers: Any) -> tuple[Any, list[bool | None]]:
    """Answer each control request by its `dry_run`. Returns the outcome, and `dry_run` of the requests."""
    requests: list[Any] = []
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as done:
            return done.value, [request.get("dry_run") for request in requests]
        answer = None
        if isinstance(step, SendMessage):
            requests.append(step.message["request"])
        elif isinstance(step, ReceiveMessage):
            last = requests[-1]
            response = answers[last.get("dry_run")]
            answer = {"response": {"subtype": "success", "request_id": last["subtype"], "response": response}}
