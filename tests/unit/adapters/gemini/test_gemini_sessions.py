"""The stored sessions of Gemini CLI 0.61.0; see tests/stores/README.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.events import AgentEvent
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter

HOME = Path(__file__).parents[3] / "stores" / "gemini" / "0.61.0" / "home"
SESSION = "0b9aca25-6136-4237-ad0e-52983c118c80"
TALK = "2712b332-0eb4-415a-8dac-01696591b27c"


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    skipped: list[Any] = []
    yield Sessions(environ={"HOME": str(HOME)}, on_skipped=skipped.append)
    assert not skipped


def events_of(sessions: Sessions, *kinds: str) -> list[AgentEvent]:
    return [event for event in sessions.events(SESSION) if event.type in kinds]


def test_a_session_is_listed_with_what_it_was(sessions: Sessions) -> None:
    [summary] = sessions.list(SessionFilter(cwd="/home/dev/project"))
    assert (summary.id, summary.title, summary.cwd) == (f"gemini:{SESSION}", "first question", "/home/dev/project")
    assert (summary.models, summary.turn_count, summary.tool_call_count) == (("gemini-2.5-pro",), 4, 5)
    assert summary.cost.source == "computed"
    # Eight calls, and one of the sub-agent: the input without what came from the cache, the output with the thoughts.
    assert (summary.cost.input_tokens, summary.cost.cached_tokens) == (9 * 120, 9 * 30)
    assert (summary.cost.output_tokens, summary.cost.thinking_tokens) == (9 * 17, 9 * 5)


def test_a_prompt_that_the_provider_refused_is_not_part_of_the_conversation(sessions: Sessions) -> None:
    messages = sessions.get(SESSION).messages
    assert [(message.role, message.text) for message in messages if message.text] == [
        ("user", "first question"), ("assistant", "Writing."), ("assistant", "First answer."),
        ("user", "third question"), ("assistant", "Third answer."),
        ("user", "fourth question"), ("assistant", "Waiting."),
        ("user", "fifth question"), ("assistant", "Fifth answer."),
    ]  # fmt: skip
    assert {message.model for message in messages if message.role == "assistant"} == {"gemini-2.5-pro"}
    assert [message.thinking for message in messages if message.thinking] == ["Counting."]


def test_tools_have_their_results(sessions: Sessions) -> None:
    write, edit, read, shell, subagent = (tool for message in sessions.get(SESSION).messages for tool in message.tools)
    assert (write.name, write.input) == ("write_file", {"file_path": "a.txt", "content": "one\n"})
    assert write.output.startswith("Successfully created")
    assert (edit.name, edit.error) == ("replace", None)
    assert (read.name, read.error) == ("read_file", "File not found: /home/dev/project/missing.txt")
    assert (shell.name, shell.output, shell.error) == ("run_shell_command", "out", "out")
    assert (subagent.name, subagent.input) == ("generalist", {"prompt": "SUBTASK count"})
    assert "Three files." in subagent.output


def test_events_contain_tool_effects(sessions: Sessions) -> None:
    created, patched = events_of(sessions, "file_create", "file_patch", "file_write")
    assert (created.type, patched.type) == ("file_create", "file_patch")
    [exited] = events_of(sessions, "shell_exit")
    assert getattr(exited, "exit_code") == 3  # noqa: B009  # one of many events


def test_events_conform_to_the_contract(sessions: Sessions) -> None:
    events = list(sessions.events(SESSION))
    assert validate(events) == []
    kinds = [event.type for event in events]
    assert kinds.count("turn_start") == kinds.count("turn_end") == 4
    assert kinds.count("subagent_spawn") == kinds.count("subagent_result") == 1


def test_acp_session_is_emitted_in_order(sessions: Sessions) -> None:
    messages = sessions.get(TALK).messages
    assert [(message.text, [tool.name for tool in message.tools]) for message in messages] == [
        ("first question", []), ("Writing.", ["write_file"]), ("", ["read_file", "run_shell_command"]),
        ("First answer.", []),
        ("third question", []), ("Working.", ["run_shell_command"]),  # the second was stopped before it was answered
        ("fourth question", []), ("Fourth answer.", []),
    ]  # fmt: skip
    events = list(sessions.events(TALK))
    assert validate(events) == []
    assert [getattr(event, "code") for event in events if event.type == "error"] == ["ABORTED"]  # noqa: B009


def test_directory_can_be_moved(sessions: Sessions) -> None:
    moved = Sessions(environ={"HOME": "/nowhere", "GEMINI_CLI_HOME": str(HOME)})
    assert moved.list() == sessions.list()
    copied = SessionFilter(agent="gemini", directory=HOME / ".gemini")
    assert Sessions(environ={"HOME": "/nowhere"}).list(copied) == sessions.list()
    assert Sessions(environ={"HOME": "/nowhere"}).list() == []
