"""Truth checks of Codex: scripts are output items of the Responses API, results are completed items.

Calls that concern another call (`write_stdin`, `wait_agent`) appear only as results of that call.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.native_output import native_lines
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux.events import (
    AgentEvent,
    InputRequiredEvent,
    McpToolCallStartEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
)
from agent_mux_testing.fixtures import Fixture

PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\']+)")
IN_CODE = re.compile(r"tools\.(exec_command|apply_patch)\((?:\{cmd:)?'(.*?)'\}?\)", re.DOTALL)
"""A call in the program that a model in code mode writes."""
ABOUT_ANOTHER = frozenset({"write_stdin", "wait_agent"})


def parts(step: Mapping[str, Any]) -> Iterator[TranscriptPart]:
    for item in step.get("items") or ():
        match item:
            case {"type": "message", "text": str(text)} if text:
                yield TranscriptPart("text", text)
            case {"type": "reasoning", "text": str(text)}:
                yield TranscriptPart("thinking", text)
            case {"type": "web_search_call", "action": {"query": query}}:
                yield TranscriptPart("call", ("search", query))
            case {"type": "custom_tool_call", "name": "exec", "input": code}:
                yield from (TranscriptPart("call", _command(name, text)) for name, text in IN_CODE.findall(code))
            case {"type": "custom_tool_call", "input": text}:
                yield TranscriptPart("call", ("patch", frozenset(PATCHED.findall(text))))
            case {"type": "function_call", "name": name} if name not in ABOUT_ANOTHER:
                yield TranscriptPart("call", _function(item))
    # A truncated answer fails the turn, but is still a step.


def _function(item: Mapping[str, Any]) -> tuple[Any, ...]:
    arguments = item.get("arguments", {})
    match item["name"], arguments:
        case "exec_command", {"cmd": command}:
            return _command("exec_command", command)
        case "spawn_agent", {"message": prompt}:
            return "delegate", prompt
        case "update_plan", {"plan": plan}:
            return "plan", [step["step"] for step in plan]
        case "request_user_input", {"questions": [question, *_]}:
            return "ask", question["question"]
    server = str(item.get("namespace", "")).removeprefix("mcp__")
    return "mcp", server, item["name"], arguments


def _command(name: str, text: str) -> tuple[Any, ...]:
    is_patch = name == "apply_patch" or text.startswith("apply_patch ")
    return ("patch", frozenset(PATCHED.findall(text))) if is_patch else ("run", text)


def call(event: AgentEvent) -> TranscriptPart | None:
    match event:
        case ToolCallReadyEvent():
            return TranscriptPart("call", _native(event))
        case McpToolCallStartEvent():
            return TranscriptPart("call", ("mcp", event.server, event.tool_name, event.input))
        case SubagentSpawnEvent():
            return TranscriptPart("call", ("delegate", event.prompt))
        case InputRequiredEvent():
            return TranscriptPart("call", ("ask", event.question))
    return None


def _native(event: ToolCallReadyEvent) -> tuple[Any, ...]:
    match event.tool_name, event.input:
        case "exec_command", {"command": command}:
            return "run", shlex.split(command)[-1]
        case "apply_patch", {"changes": changes}:
            return "patch", frozenset(change["path"].removeprefix("/home/dev/project/") for change in changes)
        case "update_plan", {"plan": plan}:
            return "plan", [step.get("step", step.get("text")) for step in plan]
        case "web_search", {"query": query}:
            return "search", query
    return event.tool_name, event.input


DIALECT = Dialect(parts=parts, call=call, keeps_order=False)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return the output of each finished command of the main thread by its item id, in both protocols."""
    found = {}
    for native in native_lines(fixture):
        item = native.get("params", native).get("item", {})
        is_done = native.get("type", native.get("method")) in {"item.completed", "item/completed"}
        output = item.get("aggregated_output", item.get("aggregatedOutput"))
        if is_done and output is not None and item.get("status") != "declined":
            found[item["id"]] = output
    return found
