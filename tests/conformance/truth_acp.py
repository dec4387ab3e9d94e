"""Scripts for ACP agents are content blocks; each agent has names of its own for tools and their inputs.

So calls are compared by what they do: the command that is run, the file that is written, changed or read.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts
from tests.conformance.printed import acp_ends, acp_texts
from tests.conformance.truth import Dialect, Said

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
PLACE = "/home/dev/project/"


def called(name: str, given: Any) -> Iterator[Any]:
    match given:
        case {"questions": [question, *_]} if name in QUESTIONS:
            yield "ask", question["question"]
        case {"subagent_type": _, "prompt": prompt}:
            yield "delegate", prompt
        case _ if name.startswith("mcp__"):
            yield *name.split("__", 2), given
        case _:
            yield _done(name, given)


def _done(name: str, given: Any) -> tuple[Any, ...]:
    fields = given if isinstance(given, dict) else {}
    if "command" in fields:
        return "run", fields["command"]
    path = next((str(fields[key]).removeprefix(PLACE) for key in PATHS if key in fields), None)
    return (name, given) if path is None else ("file", path, fields.get("content"))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent() if event.tool_name in QUESTIONS:
            return None  # the question itself is emitted, too
        case ToolCallReadyEvent():
            return Said("call", _done(event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", ("mcp", event.server, event.tool_name, event.input))
        case SubagentSpawnEvent():
            return Said("call", ("delegate", event.prompt))
        case InputRequiredEvent() if not event.question.startswith("Other ("):
            return Said("call", ("ask", event.question))
    return None


DIALECT = Dialect(parts=partial(block_parts, called=called), call=call)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what is shown at its end, of the main agent's calls that show a text and nothing better."""
    found = {}
    for update in acp_ends(fixture):
        if "parentToolCallId" in update.get("_meta", {}):
            continue
        raw = update.get("rawOutput")
        text = raw.get("output", "") if isinstance(raw, dict) and "exitCode" in raw else acp_texts(update)
        found[update["toolCallId"]] = text
    return found
