"""Native shapes of Copilot: a typed decoder for the most frequent lines, plain access to all others.

Both protocols carry the same session events: `{type, data, id, timestamp, parentId, ephemeral?, agentId?}`. `json`
prints one per line; `headless` wraps it in a `session.event` notification. Measured with Copilot CLI 1.0.102: its
recordings and its `schemas/session-events.schema.json`.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk.facts import Fact
from agent_mux_adapters._dialects.tolerant import text

# -- names of tools; the model and the options decide which of them the agent has

SHELL_TOOLS = frozenset({"bash", "powershell"})
READ_TOOL = "view"
WRITE_TOOL = "create"
EDIT_TOOL = "edit"
PATCH_TOOL = "apply_patch"
SUBAGENT_TOOL = "task"
QUESTION_TOOL = "ask_user"
BUILT_IN_TOOLS = SHELL_TOOLS | {
    READ_TOOL, WRITE_TOOL, EDIT_TOOL, PATCH_TOOL, "exit_plan_mode", "fetch_copilot_cli_documentation",
    "glob", "grep", "list_agents", "list_bash", "list_powershell", "lsp", "read_agent", "read_bash", "read_powershell",
    "report_intent", "rg", "session_store_sql", "skill", "sql", "stop_bash", "stop_powershell", "store_memory",
    "str_replace_editor", "task_complete", "update_todo", "vote_memory", "web_fetch", "web_search", "write_agent",
    "write_bash", "write_powershell",
}  # fmt: skip
"""Tools whose streamed input is shown. A fragment of an input has only the tool's name, so any other tool may belong to
an MCP server; that is known when the input is complete."""

# -- streamed fragments: the hot path

_DELTA_START = rb'\{"type":"assistant\.(?:message_delta|reasoning_delta|streaming_delta|tool_call_delta)"'
_LINE = re.compile(_DELTA_START)
_NOTIFICATION = re.compile(
    rb'\{"jsonrpc":"2\.0","method":"session\.event","params":\{"sessionId":"[^"]{0,99}","event":' + _DELTA_START
)
"""The start of lines with a fragment, which Copilot prints for every few words of the model. Lines that start in
another way are decoded as objects."""


class DeltaData(msgspec.Struct, gc=False, rename="camel"):
    """A fragment of a message, of a thought, or of the input of a call."""

    message_id: str = ""
    reasoning_id: str = ""
    delta_content: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    input_delta: str = ""


class DeltaEvent(msgspec.Struct, gc=False, rename="camel"):
    """A session event with a fragment: a whole line of `json`, or the event in a message of `headless`."""

    type: str
    data: DeltaData
    agent_id: str | None = None


class _Params(msgspec.Struct, gc=False):
    event: DeltaEvent


class _Notification(msgspec.Struct, gc=False):
    params: _Params


_decode_event = msgspec.json.Decoder(DeltaEvent).decode
_decode_notification = msgspec.json.Decoder(_Notification).decode


def delta_of_line(line: bytes) -> DeltaEvent | None:
    """Decode the fragment in a line of `json`; None for any other line."""
    if _LINE.match(line) is None:
        return None
    try:
        return _decode_event(line)
    except (ValueError, RecursionError):
        return None


def delta_of_notification(line: bytes) -> DeltaEvent | None:
    """Decode the fragment in a message of `headless`; None for any other message."""
    if _NOTIFICATION.match(line) is None:
        return None
    try:
        return _decode_notification(line).params.event
    except (ValueError, RecursionError):
        return None


# -- all other lines


def agent_of(event: Mapping[str, Any]) -> str:
    """Return the id of the sub-agent that an event belongs to; empty for the main agent."""
    return text(event.get("agentId"))


def without_redundant_ignored(steps: tuple[Any, ...], ignored: type[Fact]) -> tuple[Any, ...]:
    """Drop facts of the type `ignored` beside other facts, and all but the first one without other facts."""
    redundant = [step for step in steps if isinstance(step, ignored)]
    if not redundant:
        return steps
    rest = tuple(step for step in steps if not isinstance(step, ignored))
    return rest if any(isinstance(step, Fact) for step in rest) else (redundant[0], *rest)
