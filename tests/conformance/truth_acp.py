"""Scripts for ACP agents are content blocks; each agent has names of its own for tools and their inputs.

So calls are compared by what they do: the command that is run, the file that is written, changed or read.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import (
    AgentEvent,
    InputRequiredEvent,
    McpToolCallStartEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
)
from agent_mux.testing.fixtures import Fixture

PATHS = ("path", "file_path", "filePath")
COMMANDS = frozenset({"shell", "bash", "run_shell_command"})
QUESTIONS = frozenset({"ask", "ask_user_question"})
PLACE = "/home/dev/project/"


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": name, "input": {"questions": [question, *_]}} if name in QUESTIONS:
                yield Said("call", ("ask", question["question"]))
            case {"type": "tool_use", "input": {"subagent_type": _, "prompt": prompt}}:
                yield Said("call", ("delegate", prompt))
            case {"type": "tool_use", "name": name} if name.startswith("mcp__"):
                yield Said("call", (*name.split("__", 2), block.get("input", {})))
            case {"type": "tool_use", "name": name}:
                yield Said("call", _done(name, block.get("input", {})))


def _done(name: str, given: Any) -> tuple[Any, ...]:
    fields = given if isinstance(given, dict) else {}
    if "command" in fields:
        return "run", fields["command"]
    path = next((str(fields[key]).removeprefix(PLACE) for key in PATHS if key in fields), None)
    return (name, given) if path is None else ("file", path, fields.get("content"))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent() if event.tool_name in QUESTIONS:
            return None  # the question itself is told, too
        case ToolCallReadyEvent():
            return Said("call", _done(event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", ("mcp", event.server, event.tool_name, event.input))
        case SubagentSpawnEvent():
            return Said("call", ("delegate", event.prompt))
        case InputRequiredEvent() if not event.question.startswith("Other ("):
            return Said("call", ("ask", event.question))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return len(expected) == len(actual) and all(map(is_within, expected, actual))


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what is shown at its end, of the main agent's calls that show a text and nothing better."""
    found = {}
    for line in fixture.stdout_lines:
        native = json.loads(line) if line.startswith(b"{") else {}
        update = native.get("params", {}).get("update", {})
        is_end = update.get("sessionUpdate") == "tool_call_update" and update.get("status") in {"completed", "failed"}
        if not is_end or "parentToolCallId" in update.get("_meta", {}):
            continue
        texts = [item["content"]["text"] for item in update.get("content", ()) if item["type"] == "content"]
        raw = update.get("rawOutput")
        if isinstance(raw, dict) and "exitCode" in raw:
            texts = [raw.get("output", "")]
        if texts:
            found[update["toolCallId"]] = "\n".join(texts)
    return found
