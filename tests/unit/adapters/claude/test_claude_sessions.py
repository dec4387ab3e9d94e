"""The stored sessions of Claude Code 2.1.330; see tests/stores/README.md."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.library import SessionListing
from agent_mux.sessions.summary import SessionFilter

HOME = Path(__file__).parents[3] / "stores" / "claude" / "2.1.330" / "home"
LONG, ORIGIN, FORK = "1c2b5137-32b6-4a15-be24-b89dbb938b9b", "7b278565", "126c36d9"
PER_CALL = 0.000746  # USD


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    skipped: list[Any] = []
    yield Sessions(environ={"HOME": str(HOME)}, on_skipped=skipped.append)
    assert not skipped


def test_every_session_is_listed_with_what_it_was(sessions: Sessions) -> None:
    found = {summary.native_id[:8]: summary for summary in sessions.list()}
    assert len(found) == 3
    long = found[LONG[:8]]
    assert (long.id, long.title, long.cwd) == (f"claude:{LONG}", "first question", "/home/dev/project")
    assert (long.branch, long.agent_version, long.models) == ("master", "2.1.330", ("claude-opus-5-5",))
    assert (long.turn_count, long.tool_call_count) == (5, 2)
    assert long.cost.source == "native"
    assert long.cost.total_usd == pytest.approx(8 * PER_CALL)
    assert long.cost.input_tokens == 8 * 100  # those of the branch that was left, and of the sub-agent, too


def test_abandoned_branch_is_not_part_of_the_conversation(sessions: Sessions) -> None:
    messages = sessions.get(LONG).messages
    assert [message.text for message in messages if message.role == "user"] == [
        "first question", "third question", "fourth question", "fifth question", "sixth question",
    ]  # fmt: skip
    assert LONG not in {hit.session.native_id for hit in sessions.search("Second answer")}


def test_tools_have_their_results(sessions: Sessions) -> None:
    subagent, shell = (tool for message in sessions.get(LONG).messages for tool in message.tools)
    assert (subagent.name, subagent.output, subagent.error) == ("general-purpose", "Three files.", None)
    assert shell.name == "Bash"
    assert shell.error is not None
    assert shell.error.startswith("The user doesn't want to proceed")


def test_a_refusal_is_the_error_of_its_turn(sessions: Sessions) -> None:
    [message] = [message for message in sessions.get(LONG).messages if message.error is not None]
    assert (message.turn, message.text) == (3, "")
    assert message.error is not None
    assert "403" in message.error


def test_events_conform_to_the_contract(sessions: Sessions) -> None:
    for summary in sessions.list():
        events = list(sessions.events(summary.id))
        assert validate(events) == []
        assert [event.type for event in events].count("turn_start") == summary.turn_count
    kinds = [event.type for event in sessions.events(LONG)]
    assert kinds.count("subagent_spawn") == kinds.count("subagent_result") == 1


def test_a_fork_has_what_it_was_copied_from_and_costs_only_what_it_added(sessions: Sessions) -> None:
    difference = sessions.diff(ORIGIN, FORK)
    assert difference.common == 2
    assert [[message.text for message in change.added] for change in difference.changes] == [
        ["second question", "Second answer."],
    ]  # fmt: skip
    [total] = sessions.total_cost(SessionFilter(cwd="/home/dev/other")).values()
    assert (total.calls, total.native_usd) == (2, pytest.approx(2 * PER_CALL))


def test_directory_can_be_moved(sessions: Sessions) -> None:
    moved = Sessions(environ={"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(HOME / ".claude")})
    assert moved.list() == sessions.list()
    copied = SessionFilter(agent="claude", directory=HOME / ".claude")
    assert Sessions(environ={"HOME": "/nowhere"}).list(copied) == sessions.list()


# -- older releases


def row(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "sessionId": OLD, "cwd": "/w", "timestamp": "2026-11-23T05:14:40Z", **fields})


def answer(name: str, **fields: Any) -> str:
    usage = {"input_tokens": 100, "output_tokens": 10}
    message = {"id": name, "model": "m", "content": [{"type": "text", "text": name}], "usage": usage}
    return row("assistant", uuid=name, requestId=name, message=message, **fields)


OLD = "0b1c0000-0000-4000-8000-000000000000"
PROMPT = row("user", uuid="u1", message={"content": "do it"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / ".claude" / "projects" / "-w"
    directory.mkdir(parents=True)
    return directory


def listed(project: Path) -> SessionListing:
    return Sessions(environ={"HOME": str(project.parents[2])}, on_skipped=lambda _: None).list()


def write(project: Path, name: str, *rows: str) -> None:
    (project / f"{name}.jsonl").write_text("\n".join([*rows, ""]))


def test_rows_of_a_subagent_in_the_same_file_only_cost(project: Path) -> None:
    write(project, OLD, PROMPT, answer("a1", parentUuid="u1"), answer("s1", isSidechain=True))
    [summary] = listed(project)
    assert (summary.message_count, summary.cost.input_tokens) == (2, 200)


def test_file_of_a_subagent_beside_its_session_only_costs(project: Path) -> None:
    result = {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]}
    reported = row("user", uuid="u2", parentUuid="a1", message=result, toolUseResult={"agentId": "aa7c445"})
    write(project, OLD, PROMPT, answer("a1", parentUuid="u1"), reported)
    write(project, "agent-aa7c445", answer("s1", isSidechain=True, agentId="aa7c445"))
    write(project, "agent-bb00000", answer("s2", isSidechain=True, agentId="bb00000"))
    listing = listed(project)
    [summary] = listing
    assert (summary.message_count, summary.cost.input_tokens) == (2, 200)
    assert listing.skipped == ()


def test_file_without_a_conversation_is_not_reported(project: Path) -> None:
    write(project, OLD, row("queue-operation", operation="dequeue"), json.dumps({"type": "summary", "summary": "x"}))
    assert (listed(project), listed(project).skipped) == ([], ())


def test_file_of_unknown_rows_is_named(project: Path) -> None:
    write(project, OLD, row("utterance", text="hello"), row("gesture"))
    [skipped] = listed(project).skipped
    assert skipped.reason == "no message in it can be read, only unknown rows (utterance, gesture)"


@pytest.mark.parametrize("uuid", [["x"], {}, 5, ""])
def test_rows_with_an_id_of_another_type_are_read(project: Path, uuid: Any) -> None:
    answered = json.dumps({**json.loads(answer("a1")), "uuid": uuid})
    write(project, OLD, row("user", uuid=uuid, message={"content": "do it"}), answered)
    [summary] = listed(project)
    assert (summary.title, summary.message_count) == ("do it", 2)
