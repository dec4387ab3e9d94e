"""What a stored session of Gemini CLI takes back, replaces and repeats."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.sessions.client import Sessions

Row = dict[str, Any]
HEADER: Row = {"sessionId": "0b1c2d3e", "projectHash": "00", "startTime": "2026-11-22T10:00:00Z", "kind": "main"}
CONTEXT: Row = {
    "id": "ctx",
    "type": "user",
    "content": [{"text": "<session_context>\nWhere it works.\n</session_context>"}],
}


def asked(name: str) -> Row:
    return {"id": name, "timestamp": "2026-11-22T10:00:01Z", "type": "user", "content": [{"text": f"question {name}"}]}


def answered(name: str, **fields: Any) -> Row:
    tokens = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115}
    row = {"id": name, "timestamp": "2026-11-22T10:00:02Z", "type": "gemini", "content": f"answer {name}"}
    return {**row, "thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro", **fields}


def patched(*messages: Row) -> Row:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-11-22T10:00:03Z"}}


class Store:
    """One session, and what is read of it."""

    def __init__(self, home: Path) -> None:
        self.path = home / ".gemini/tmp/project/chats/session-2026-11-22T10-00-0b1c2d3e.jsonl"
        self.path.parent.mkdir(parents=True)
        self.skipped: list[Any] = []
        self.sessions = Sessions(environ={"HOME": str(home)}, on_skipped=self.skipped.append)

    def write(self, *rows: Row) -> None:
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.sessions.get("0b1c2d3e").messages]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.sessions.events("0b1c2d3e")]

    @property
    def calls(self) -> int:
        [total] = self.sessions.total_cost().values()
        return total.calls


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_prompt_that_was_rewound_is_no_part_of_the_conversation_but_cost_something(store: Store) -> None:
    store.write(
        HEADER, asked("a"), answered("b"), asked("c"), answered("d"), {"$rewindTo": "c"}, asked("e"), answered("f")
    )
    assert store.texts == ["question a", "answer b", "question e", "answer f"]
    assert store.calls == 3


def test_rewind_to_an_unknown_message_removes_all(store: Store) -> None:
    store.write(HEADER, asked("a"), answered("b"), {"$rewindTo": "x"}, asked("c"))
    assert store.texts == ["question c"]


def test_failed_prompt_is_removed(store: Store) -> None:
    store.write(
        HEADER, patched(CONTEXT), asked("a"), answered("b"), asked("c"), patched(CONTEXT, asked("a"), answered("b"))
    )
    assert store.texts == ["question a", "answer b"]


def test_resumed_session_is_emitted_once(store: Store) -> None:
    first = (HEADER, patched(CONTEXT), asked("a"), answered("b"))
    again = (HEADER, patched(CONTEXT), {"$set": {"sessionId": "0b1c2d3e"}}, patched(CONTEXT, asked("a"), answered("b")))
    store.write(*first, *again, asked("c"), answered("d"))
    assert store.texts == ["question a", "answer b", "question c", "answer d"]
    assert store.calls == 2


def test_messages_before_a_compaction_are_kept(store: Store) -> None:
    summary: Row = {"id": "s", "type": "user", "content": [{"text": "<state_snapshot>all</state_snapshot>"}]}
    thanks: Row = {"id": "t", "type": "gemini", "content": [{"text": "Got it."}]}
    compacted = patched(CONTEXT, summary, thanks)
    resumed = (HEADER, patched(CONTEXT), patched(CONTEXT, summary, thanks, asked("c"), answered("d")))
    store.write(HEADER, patched(CONTEXT), asked("a"), answered("b"), compacted, asked("c"), answered("d"), *resumed)
    assert store.texts == ["question a", "answer b", "question c", "answer d"]
    assert store.types.count("context_compacted") == 1


def test_rewritten_answer_with_calls_is_emitted_once(store: Store) -> None:
    call = {
        "id": "1", "name": "run_shell_command", "args": {"command": "false"}, "status": "success",
        "timestamp": "2026-11-22T10:00:05Z", "resultDisplay": "",
        "result": [{"functionResponse": {"response": {
            "output": "<untrusted_context>\nOutput: (empty)\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>",
        }}}],
    }  # fmt: skip
    store.write(HEADER, asked("a"), answered("b"), answered("b", toolCalls=[call]), answered("c"))
    assert store.texts == ["question a", "answer b", "answer c"]
    [tool] = store.sessions.get("0b1c2d3e").messages[1].tools
    assert (tool.name, tool.output, tool.error) == ("run_shell_command", "", "exit code 1")
    assert store.types.count("turn_end") == 1
    assert store.calls == 2


def test_a_list_with_gaps_takes_back_only_what_follows_its_last_message(store: Store) -> None:
    """As the ACP mode writes them."""
    call = {"id": "1", "name": "read_file", "args": {}, "status": "error", "timestamp": "2026-11-22T10:00:05Z"}
    calls: Row = {**answered("x", content=""), "tokens": None, "toolCalls": [call]}
    first = (HEADER, patched(CONTEXT), asked("a"), answered("b"), calls, answered("c"))
    stopped = (asked("d"), patched(CONTEXT, asked("a"), answered("b"), answered("c")))
    resumed = (HEADER, patched(CONTEXT), patched(CONTEXT, asked("a"), calls, asked("x_response"), answered("c")))
    store.write(*first, *stopped, *resumed, asked("e"), answered("f"))
    assert store.texts == ["question a", "answer b", "answer c", "question e", "answer f"]
    [tool] = store.sessions.get("0b1c2d3e").messages[1].tools
    assert tool.error == "the tool failed without a message"


@pytest.mark.parametrize(
    "words", ["<hook_context>x</hook_context>", "Here is the user's editor context as a JSON object."]
)
def test_injected_messages_are_no_prompts(store: Store, words: str) -> None:
    store.write(HEADER, asked("a"), {**asked("b"), "content": [{"text": words}]}, answered("c"))
    assert store.texts == ["question a", "answer c"]


def test_prompt_is_emitted_as_typed(store: Store) -> None:
    store.write(HEADER, {**asked("a"), "displayContent": [{"text": "see @a.txt"}]}, answered("b"))
    assert store.texts[0] == "see @a.txt"


def test_other_files_are_skipped_with_a_reason(store: Store) -> None:
    store.write({"id": "a", "type": "user", "content": "no header"})
    assert store.sessions.list() == []
    [skipped] = store.skipped
    assert "has no session id" in str(skipped)


def test_the_cli_may_give_a_session_a_title(store: Store) -> None:
    store.write(HEADER, asked("a"), answered("b"), {"$set": {"summary": "A title", "memoryScratchpad": {"version": 1}}})
    assert [summary.title for summary in store.sessions.list()] == ["A title"]


def test_messages_without_an_id_are_never_removed(store: Store) -> None:
    known, unnamed = [asked("a"), answered("b")], [asked(""), answered("")]
    store.write(HEADER, *known, *unnamed, patched(*known, *unnamed), patched(*known))
    assert store.texts == ["question a", "answer b", "question ", "answer "]
