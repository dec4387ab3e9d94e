"""Scripts for ACP agents are content blocks; each agent has its own names for tools and their inputs.

Therefore calls are compared by their effect: the command, or the file that is written, edited or read.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts
from tests.conformance.native_output import acp_ends, acp_texts
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux.events import (
    AgentEvent,
    InputRequiredEvent,
    McpToolCallStartEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
)
from agent_mux_testing.fixtures import Fixture

PATHS = ("path", "file_path", "filePath")
COMMANDS = frozenset({"shell", "bash", "run_shell_command"})
QUESTIONS = frozenset({"ask", "ask_user_question"})
PROJECT = "/home/dev/project/"


def call_parts(name: str, given: Any) -> Iterator[Any]:
    match given:
        case {"questions": [question, *_]} if name in QUESTIONS:
            yield "ask", question["question"]
        case {"subagent_type": _, "prompt": prompt}:
            yield "delegate", prompt
        case _ if name.startswith("mcp__"):
            yield *name.split("__", 2), given
        case _:
            yield _effect(name, given)


def _effect(name: str, given: Any) -> tuple[Any, ...]:
    fields = given if isinstance(given, dict) else {}
    if "command" in fields:
        return "run", fields["command"]
    path = next((str(fields[key]).removeprefix(PROJECT) for key in PATHS if key in fields), None)
    return (name, given) if path is None else ("file", path, fields.get("content"))


def call(event: AgentEvent) -> TranscriptPart | None:
    match event:
        case ToolCallReadyEvent() if event.tool_name in QUESTIONS:
            return None  # the question has its own event
        case ToolCallReadyEvent():
            return TranscriptPart("call", _effect(event.tool_name, event.input))
        case McpToolCallStartEvent():
            return TranscriptPart("call", ("mcp", event.server, event.tool_name, event.input))
        case SubagentSpawnEvent():
            return TranscriptPart("call", ("delegate", event.prompt))
        case InputRequiredEvent() if not event.question.startswith("Other ("):
            return TranscriptPart("call", ("ask", event.question))
    return None


DIALECT = Dialect(parts=partial(block_parts, call_parts=call_parts), call=call)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the text of the ended call, for calls of the main agent."""
    found = {}
    for update in acp_ends(fixture):
        if "parentToolCallId" in update.get("_meta", {}):
            continue
        raw = update.get("rawOutput")
        text = raw.get("output", "") if isinstance(raw, dict) and "exitCode" in raw else acp_texts(update)
        found[update["toolCallId"]] = text
    return found
