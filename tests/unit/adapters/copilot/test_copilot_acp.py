"""`copilot --acp`: Copilot's conventions on top of the protocol."""

from typing import Any

import pytest
from copilot_transcript import SESSION, events_of, gone, new_codec
from tests.unit.adapters.codec_conversation import PROJECT, facts_of, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Codec, Source

SIDES = (
    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": PROJECT, "mcpServers": []}},
    {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": SESSION, "prompt": []}},
)
FINISHED = "\n<shellId: 0 completed with exit code 3>"


def update(kind: str, /, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str, kind: str = "agent_message_chunk") -> bytes:
    """Return a line as Copilot prints it, without spaces."""
    content = f'{{"type":"text","text":"{text}"}}'
    head = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{SESSION}"'
    return f'{head},"update":{{"sessionUpdate":"{kind}","content":{content}}}}}}}'.encode()


def call(title: str, kind: str, **fields: Any) -> dict[str, Any]:
    return update("tool_call", toolCallId="c", title=title, kind=kind, status="pending", **fields)


def ended(content: str, status: str = "completed", **output: Any) -> dict[str, Any]:
    shown = [{"type": "content", "content": {"type": "text", "text": content}}]
    raw_output = {"content": content, "detailedContent": content, **output}
    return update("tool_call_update", toolCallId="c", status=status, content=shown, rawOutput=raw_output)


USAGE = update("usage_update", used=10, size=100)


def done(**usage: int) -> bytes:
    tokens = ",".join(f'"{name}":{count}' for name, count in usage.items())
    return f'{{"jsonrpc":"2.0","id":3,"result":{{"stopReason":"end_turn","usage":{{{tokens}}}}}}}'.encode()


def prompted() -> Codec:
    """Return an observing codec in a turn."""
    codec = new_codec("acp")
    for ours in SIDES:
        receive(codec, ours, source=Source.STDIN)
    receive(codec, {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": SESSION}})
    return codec


def emitted(*lines: Any) -> list[Any]:
    """Return the facts of these lines, without those of every turn."""
    steps = facts_of(receive(prompted(), *lines))
    return [step for step in steps if not isinstance(step, facts.TurnBegin | facts.StepBegin)]


# -- calls


@pytest.mark.parametrize(
    ("title", "kind", "given", "name"),
    [
        ("run it", "execute", {"command": "make"}, "bash"),
        ("Creating /a", "edit", {"path": "/a", "file_text": ""}, "create"),
        ("Editing /a", "edit", {"path": "/a", "old_str": "x"}, "edit"),
        ("Viewing /a", "read", {"path": "/a"}, "view"),
        ("Searching for 'x'", "read", {"pattern": "x", "path": "/"}, "grep"),
        ("Finding files matching x", "read", {"pattern": "x"}, "glob"),
        ("Reading shell output", "read", {"shellId": "s", "delay": 0}, "read_bash"),
        ("Plan", "other", {"description": "Plan", "query": "SELECT 1"}, "sql"),
        ("no_such_tool", "other", {"a": 1}, "no_such_tool"),
        ("What it is about", "other", {"a": 1}, "other"),
    ],
)
def test_names_of_tools(title: str, kind: str, given: dict[str, Any], name: str) -> None:
    ready = emitted(call(title, kind, rawInput=given))[0]
    assert isinstance(ready, facts.ToolReady)
    assert (ready.name, ready.input) == (name, given)


def test_a_failing_command_is_completed() -> None:
    exited = [{"type": "shell_exit", "exitCode": 3}]
    for contents in (exited, []):
        ran = emitted(call("run it", "execute", rawInput={"command": "x"}), ended(f"out{FINISHED}", contents=contents))[
            -1
        ]
        assert (ran.exit_code, ran.stdout, ran.error) == (3, "out", f"out{FINISHED}")


def test_a_command_in_the_background() -> None:
    given = {"command": "serve", "mode": "async"}
    ready, ran = emitted(call("run it", "execute", rawInput=given), ended("<started>"))
    assert (ready.shell, ran.exit_code, ran.error, ran.output) == (None, None, None, "<started>")
    ran = emitted(call("run it", "execute", rawInput={"command": "serve"}), ended("<moved>"))[-1]
    assert (ran.exit_code, ran.error, ran.output) == (-1, None, "<moved>")


def test_a_refused_call() -> None:
    refused = update("tool_call_update", toolCallId="c", status="failed", rawOutput={"message": "no", "code": "x"})
    ran = emitted(call("run it", "execute", rawInput={"command": "x"}), refused)[-1]
    assert (ran.error, ran.exit_code) == ("no", None)


def test_files() -> None:
    kinds = {one.type for one in events_of("acp_tools")}
    assert {"file_create", "file_patch", "file_read"} <= kinds
    reads = [one.path for one in events_of("acp_tools") if one.type == "file_read"]  # type: ignore[union-attr]
    assert reads == [f"{PROJECT}/a.txt"]  # neither a listed directory nor a search
    [patched] = [one for one in events_of("acp_tools") if one.type == "file_patch"]
    assert patched.diff.endswith("a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n")  # type: ignore[union-attr]


# -- errors, notes and captions


def test_an_error_message_at_the_end_of_a_turn_is_its_failure() -> None:
    *_, failed = emitted(USAGE, chunk("Error: 400 maximum context length is 10 tokens"), USAGE, done())
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "CONTEXT_EXCEEDED"
    assert failed.failure.message.startswith("400 ")


def test_a_message_that_begins_like_a_failure_is_a_message() -> None:
    steps = emitted(USAGE, chunk("Error: so"), chunk("Error: and"), chunk(" on"), done())
    assert steps[:3] == [facts.TextDelta("Error: so"), facts.TextDelta("Error: and"), facts.TextDelta(" on")]
    assert isinstance(steps[-1], facts.TurnDone)


def test_a_message_is_not_lost_with_the_process() -> None:
    codec = prompted()
    receive(codec, USAGE, chunk("Error: so"))
    assert facts.TextDelta("Error: so") in gone(codec)


def test_infos_are_notes() -> None:
    assert emitted(chunk("Info: Operation cancelled by user")) == [facts.Note("Operation cancelled by user")]
    assert emitted(chunk("Info: /home/dev/project/a.txt")) == []


def test_each_model_call_is_a_step() -> None:
    steps = facts_of(receive(prompted(), USAGE, chunk("One."), USAGE, chunk("Two."), done()))
    kept = [step for step in steps if isinstance(step, facts.StepBegin | facts.TextDelta)]
    assert kept == [facts.StepBegin(), facts.TextDelta("One."), facts.StepBegin(), facts.TextDelta("Two.")]


def test_the_caption_of_a_tool_call_is_not_a_thought() -> None:
    lines = (USAGE, call("Plan", "other", rawInput={"query": "x"}), ended("1 row"))
    caption = chunk("first", "agent_thought_chunk")
    assert not [step for step in emitted(*lines, caption) if isinstance(step, facts.ThinkingDelta)]
    assert emitted(*lines, USAGE, caption)[-1] == facts.ThinkingDelta("first")


def test_messages_of_a_sub_agent_are_not_messages_of_the_agent() -> None:
    given = {"agent_type": "task", "prompt": "look", "mode": "sync"}
    steps = emitted(USAGE, call("Look", "other", rawInput=given), USAGE, chunk("Found."), ended("Found."))
    assert steps == [facts.SubagentBegin("c", "task", "look"), facts.SubagentDone("c", "Found.")]


def test_tokens_are_counted_from_the_start_of_the_process() -> None:
    counts = {"inputTokens": 150, "outputTokens": 12, "totalTokens": 162, "cachedReadTokens": 30}
    codec = prompted()
    receive(codec, USAGE, chunk("Hi"))
    used = [step for step in receive(codec, done(**counts)) if isinstance(step, facts.Usage)]
    assert [(one.input_tokens, one.cached_tokens) for one in used] == [(120, 30)]
    receive(codec, {**SIDES[1], "id": 4}, source=Source.STDIN)
    receive(codec, USAGE, chunk("Error: no"))
    again = done(**counts).replace(b'"id":3', b'"id":4')  # the turn failed: no tokens were added
    assert not [step for step in receive(codec, again) if isinstance(step, facts.Usage)]
