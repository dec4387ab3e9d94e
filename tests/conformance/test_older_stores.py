"""Session stores written by older releases of real CLIs (tests/stores/README.md): equal sessions are read from all."""

import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions import export
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.conversation import Session
from agent_mux.sessions.events import SessionEventConverter
from agent_mux.sessions.library import SkippedFile
from agent_mux.sessions.summary import SessionFilter, SessionSummary

STORES = Path(__file__).parents[1] / "stores" / "older"
RECORDED = [path.parent for path in sorted(STORES.glob("*/*/home"))]
PROJECT = "/home/dev/project"
SCRIPT = ["Writing.", "Now run.", "All done."]
TOOLS = {
    "claude": ("Write", "Edit", "Bash", "Bash"),
    "codex": ("apply_patch", "apply_patch", "exec_command", "exec_command"),
    "copilot": ("create", "edit", "bash", "bash"),
    "gemini": ("write_file", "replace", "run_shell_command", "run_shell_command"),
    "opencode": ("write", "edit", "bash", "bash"),
    "pi": ("write", "edit", "bash", "bash"),
}
WITHOUT_DIRECTORY = frozenset({"gemini"})
"""Agents whose sessions do not contain their directory; the file with it was not recorded."""
MERGED_STEPS = frozenset({"gemini/0.15.4", "gemini/0.30.0"})
"""Releases that store the tool calls of an answer without text with the answer before it."""


@pytest.fixture(params=RECORDED, ids=lambda path: "/".join(path.parts[-2:]))
def store(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture
def sessions(store: Path) -> Sessions:
    def fail(skipped: SkippedFile) -> None:
        raise AssertionError(str(skipped))

    return Sessions(environ={"HOME": str(store / "home")}, on_skipped=fail)


def agent_of(store: Path) -> str:
    return store.parent.name


def with_four_tools(sessions: Sessions) -> Session:
    [found] = [summary for summary in sessions.list() if summary.tool_call_count == 4]
    return sessions.get(found.id)


def named(sessions: Sessions, title: str, tools: int) -> list[SessionSummary]:
    return [found for found in sessions.list() if (found.title, found.tool_call_count) == (title, tools)]


def test_session_with_tools_has_its_messages_in_order(sessions: Sessions, store: Path) -> None:
    session = with_four_tools(sessions)
    summary = session.summary
    assert (summary.agent, summary.title, summary.turn_count) == (agent_of(store), "do the thing", 1)
    assert summary.cwd == (None if agent_of(store) in WITHOUT_DIRECTORY else PROJECT)
    assert summary.updated_at >= (summary.created_at or 0) > 0
    assert [message.text.strip() for message in session.messages if message.role == "user"] == ["do the thing"]
    assert [message.text for message in session.messages if message.role == "assistant" and message.text] == SCRIPT
    assert summary.message_count == 4


def test_agent_version_and_resumable_id_are_known(sessions: Sessions, store: Path) -> None:
    for summary in sessions.list():
        assert summary.native_id in Path(summary.path).read_text()
        assert summary.agent_version in {None, store.name}
        assert (summary.agent_version is None) == (agent_of(store) in {"gemini", "pi"})


def test_tool_calls_have_one_result_each(sessions: Sessions, store: Path) -> None:
    session = with_four_tools(sessions)
    tools = [tool for message in session.messages for tool in message.tools]
    assert tuple(tool.name for tool in tools) == TOOLS[agent_of(store)]
    assert len({tool.id for tool in tools}) == 4
    assert [tool.error is None for tool in tools] == [True, True, True, False]
    assert "a.txt" in str(tools[0].input)
    assert "echo out" in str(tools[2].input)
    assert "out" in str(tools[2].output)
    assert "oops" in (tools[3].error or "")


def test_tools_belong_to_the_answer_that_called_them(sessions: Sessions, store: Path) -> None:
    steps = [(message.text, len(message.tools)) for message in with_four_tools(sessions).messages[1:]]
    if "/".join(store.parts[-2:]) in MERGED_STEPS:
        assert steps == [("Writing.", 2), ("Now run.", 2), ("All done.", 0)]
    else:
        assert steps == [("Writing.", 1), ("", 1), ("Now run.", 1), ("", 1), ("All done.", 0)]


def test_events_contain_file_changes_and_exit_codes(sessions: Sessions) -> None:
    events: list[Any] = list(sessions.events(with_four_tools(sessions).summary.id))
    assert [event.exit_code for event in events if event.type == "shell_exit"] in ([0, 3], [0, -1])
    files = [event for event in events if event.type in {"file_create", "file_write", "file_patch"}]
    assert [event.type for event in files] == ["file_create", "file_patch"]
    assert {Path(event.path).name for event in files} == {"a.txt"}
    assert files[0].byte_count == len("one\ntwo\n")
    assert "+TWO" in files[1].diff


def test_exit_codes_are_known(sessions: Sessions, store: Path) -> None:
    if store.name == "1.0.120":
        pytest.skip("Claude Code 1.0 stores no exit codes")
    events: list[Any] = list(sessions.events(with_four_tools(sessions).summary.id))
    assert [event.exit_code for event in events if event.type == "shell_exit"] == [0, 3]


def test_usage_is_that_of_the_model_calls(sessions: Sessions, store: Path) -> None:
    cost = with_four_tools(sessions).summary.cost
    calls = 3 if "/".join(store.parts[-2:]) in MERGED_STEPS else 5
    per_call = {"claude": (100, 12), "codex": (70, 20), "copilot": (120, 12)}.get(agent_of(store), (120, 17))
    assert (cost.input_tokens, cost.output_tokens) == (per_call[0] * calls, per_call[1] * calls)
    assert cost.cached_tokens == 30 * calls


def test_event_streams_of_all_sessions_are_valid(sessions: Sessions) -> None:
    found = sessions.list(limit=None)
    assert found
    for summary in found:
        events = list(sessions.events(summary.id))
        kinds = [event.type for event in events]
        assert validate(events) == []
        assert kinds.count("turn_start") == kinds.count("turn_end") == summary.turn_count
        assert events == list(sessions.events(summary.id))


def test_sessions_are_exported_and_found_by_their_text(sessions: Sessions) -> None:
    session = with_four_tools(sessions)
    forms: tuple[export.Format, ...] = ("json", "jsonl", "markdown", "html")
    for form in forms:
        text = sessions.export(session.summary.id, form)
        for answer in SCRIPT:
            assert text.count(answer) == 1
    [hit] = sessions.search("All done.")
    assert (hit.session.id, hit.count) == (session.summary.id, 1)


def test_resumed_session_has_both_turns(sessions: Sessions) -> None:
    found = named(sessions, "what is the number", 0)
    if not found:
        pytest.skip("no resumed session was recorded with this release")
    [summary] = found
    assert summary.turn_count == 2
    texts = [message.text for message in sessions.get(summary.id).messages]
    assert texts == ["what is the number", "It is 17.", "and again", "Still 17."]
    ends = [event.type for event in sessions.events(summary.id) if event.type in {"turn_start", "turn_end"}]
    assert ends == ["turn_start", "turn_end"] * 2


def test_denied_command_is_an_error(sessions: Sessions) -> None:
    found = named(sessions, "do the thing", 1)
    if not found:
        pytest.skip("no denial was recorded with this release")
    [summary] = found
    [tool] = [tool for message in sessions.get(summary.id).messages for tool in message.tools]
    assert tool.error


def test_growing_file_has_the_events_of_the_whole_file(sessions: Sessions, store: Path, tmp_path: Path) -> None:
    """Reading after every line yields a conforming stream with the same messages and tool calls."""
    for summary in sessions.list():
        known = sessions.find(summary.id)
        if known.found.path.suffix != ".jsonl":
            continue
        copy = tmp_path / known.found.path.relative_to(store)
        copy.parent.mkdir(parents=True, exist_ok=True)
        first, *lines = known.found.path.read_bytes().splitlines(keepends=True)
        copy.write_bytes(first)
        cursor = sessions.open(known._replace(found=known.found._replace(path=copy)))
        converter = SessionEventConverter(known.adapter, summary)
        events: list[Any] = list(converter.read(cursor))
        for line in lines:
            with copy.open("ab") as file:
                file.write(line)
            events += converter.read(cursor)
        events += converter.end()
        assert validate(events) == []
        assert contents(events) == contents(sessions.events(summary.id))


def contents(events: Iterable[Any]) -> list[Any]:
    """Return the messages, the tool calls and their results."""
    kinds = {"message_stop": "text", "tool_call_ready": "input", "tool_result": "output", "tool_error": "error"}
    return [getattr(event, kinds[event.type]) for event in events if event.type in kinds]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_damaged_store_raises_nothing(store: Path, tmp_path: Path, seed: int) -> None:
    """A file that is truncated or changed anywhere yields another session, or none, but no error."""
    chosen = random.Random(seed)  # noqa: S311  # which bytes to change
    shutil.copytree(store / "home", tmp_path / "home")
    files = sorted(path for path in (tmp_path / "home").rglob("*.json*") if path.is_file())
    reasons: set[str] = set()
    sessions = Sessions(environ={"HOME": str(tmp_path / "home")}, on_skipped=lambda one: reasons.add(one.reason))
    for _ in range(12):
        path = chosen.choice(files)
        content = path.read_bytes()
        path.write_bytes(damaged(content, chosen))
        for summary in sessions.list():
            assert validate(list(sessions.events(summary.id))) == []
        path.write_bytes(content)
    assert not [reason for reason in reasons if "the adapter failed" in reason]


def damaged(content: bytes, chosen: random.Random) -> bytes:
    """Return the content truncated, or with other bytes or values."""
    at = chosen.randrange(len(content))
    values = [b"null", b"[]", b"{}", b"-1", b"1e400", b'"' + b"x" * 3_000_000 + b'"', b'"\\ud800"', b"[" * 500]
    match chosen.randrange(3):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes(chosen.randrange(256) for _ in range(20)) + content[at + 20 :]
    begin = content.find(b'":', at)
    end = content.find(b",", begin)
    return content if begin < 0 or end < 0 else content[: begin + 2] + chosen.choice(values) + content[end:]


def test_copied_store_is_read_from_another_directory(sessions: Sessions, store: Path, tmp_path: Path) -> None:
    own = {"pi": ".pi/agent", "opencode": ".local/share/opencode"}.get(agent_of(store), f".{agent_of(store)}")
    shutil.copytree(store / "home" / own, tmp_path / "copy")
    empty = Sessions(environ={"HOME": str(tmp_path / "nowhere")})
    copied = empty.list(SessionFilter(agent=agent_of(store), directory=tmp_path / "copy"))
    assert [summary.id for summary in copied] == [summary.id for summary in sessions.list()]
