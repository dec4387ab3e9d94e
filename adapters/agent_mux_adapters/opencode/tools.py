"""Tool calls: their names, and their parts while the input streams, the tool runs, and when it is done.

`opencode serve` repeats a call with each state: pending, running, and completed or failed; `opencode run` prints the
last state only.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    McpBegin,
    McpDone,
    ShellInvocation,
    SkillInvoked,
    SubagentBegin,
    SubagentDone,
    ToolBegin,
    ToolDone,
    ToolOutput,
    ToolReady,
)
from agent_mux.sdk.streamed_text import missing_text
from agent_mux_adapters._dialects.tolerant import as_json, mapping, need_mapping, need_text, optional_whole, text
from agent_mux_adapters.opencode.tool_results import effects_of

SHELL_TOOL = "bash"
TASK_TOOL = "task"
INVALID_TOOL = "invalid"
"""Stands for an unknown tool, or one with invalid input; its own input contains the tool's name and the error."""

BUILT_IN = frozenset({
    SHELL_TOOL, TASK_TOOL, INVALID_TOOL, "StructuredOutput", "apply_patch", "codesearch", "edit", "execute", "glob",
    "grep", "list", "lsp", "multiedit", "patch", "plan_enter", "plan_exit", "question", "read", "skill", "todoread",
    "todowrite", "webfetch", "websearch", "write",
})  # fmt: skip
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
NO_OUTPUT = "(no output)"
STOPPED_EXIT_CODE = -1
"""The exit code for a command that was stopped and has none."""
SHELL_METADATA = "\n\n<shell_metadata>\n"
"""Begins OpenCode's remarks for the model at the end of a command's output: that it was stopped, or timed out."""
_TASK_RESULT = ("<task_result>\n", "\n</task_result>")
Part = Mapping[str, Any]


class McpToolNames:
    """The names of MCP tools, which are `<server>_<tool>`."""

    def __init__(self) -> None:
        self._servers: dict[str, str] | None = None

    def set_servers(self, servers: Iterable[str]) -> None:
        """Set the names of the MCP servers, as OpenCode lists them."""
        self._servers = {f"{_OTHER.sub('_', server)}_": server for server in servers}

    def mcp(self, tool: str) -> tuple[str, str] | None:
        """Return server and tool; None for other tools.

        While the servers are unknown, the name of a server is taken to end at the first underscore.
        """
        if tool in BUILT_IN:
            return None
        if self._servers is None:
            server, _, name = tool.partition("_")
            return (server, name) if server and name else None
        matching = [prefix for prefix in self._servers if tool.startswith(prefix) and len(tool) > len(prefix)]
        prefix = max(matching, key=len, default=None)
        return None if prefix is None else (self._servers[prefix], tool[len(prefix) :])


class OpencodeToolCalls:
    """The tool calls of one session."""

    def __init__(self, cwd: str, names: McpToolNames) -> None:
        self._cwd = cwd
        self._names = names
        self._ready: set[str] = set()
        self.tools: dict[str, str] = {}
        """Call id -> tool."""
        self._streamed: dict[str, str] = {}
        """Call id -> the output of a running command that was emitted."""

    def read_part(self, part: Part) -> tuple[Fact, ...]:
        """Read a tool part. Raises `WrongShapeError` for another shape."""
        state = need_mapping(part, "state")
        call_id, tool, status = need_text(part, "callID"), need_text(part, "tool"), text(state.get("status"))
        self.tools[call_id] = tool
        match status:
            case "pending":
                return self._input_pending(call_id, tool)
            case "running":
                return self._input_complete(call_id, tool, state)
            case "completed" | "error":
                return *self._begin_once(call_id, tool, state), *self._end(call_id, tool, state)
        return ()

    def _input_pending(self, call_id: str, tool: str) -> tuple[Fact, ...]:
        if call_id in self._ready or tool == TASK_TOOL or self._names.mcp(tool) is not None:
            return (Ignored("part:tool/pending", "emitted when its input is complete"),)
        return (ToolBegin(call_id, tool),)

    def _input_complete(self, call_id: str, tool: str, state: Part) -> tuple[Fact, ...]:
        emitted = *self._begin_once(call_id, tool, state), *self._output(call_id, tool, state)
        return emitted or (Ignored("part:tool/running", "nothing new"),)

    def _begin_once(self, call_id: str, tool: str, state: Part) -> tuple[Fact, ...]:
        if call_id in self._ready:
            return ()
        arguments = mapping(state.get("input"))
        if tool == TASK_TOOL:
            return self._begin_subagent(call_id, arguments, state)
        self._ready.add(call_id)
        mcp = self._names.mcp(tool)
        if mcp is not None:
            return (McpBegin(call_id, *mcp, arguments),)
        if tool == INVALID_TOOL:  # the model's input is not reported
            return (ToolReady(call_id, text(arguments.get("tool")) or tool, None),)
        # A call has metadata as soon as it runs, so it was permitted.
        permitted = "metadata" in state
        return (ToolReady(call_id, tool, arguments, _shell(arguments) if tool == SHELL_TOOL else None, permitted),)

    def _begin_subagent(self, call_id: str, arguments: Part, state: Part) -> tuple[Fact, ...]:
        child = text(mapping(state.get("metadata")).get("sessionId"))
        if not child and state.get("status") == "running":
            return ()  # the sub-agent has no session yet, and may still be denied
        self._ready.add(call_id)
        name = text(arguments.get("subagent_type")) or text(arguments.get("description")) or TASK_TOOL
        return (SubagentBegin(child or call_id, name, text(arguments.get("prompt"))),)

    def _output(self, call_id: str, tool: str, state: Part) -> tuple[Fact, ...]:
        whole = text(mapping(state.get("metadata")).get("output"))
        if tool != SHELL_TOOL or not whole:
            return ()
        emitted_output = self._streamed.get(call_id, "")
        missing = missing_text(whole, emitted_output)
        if missing is None:  # a long output is cut at its beginning
            return ()
        self._streamed[call_id] = whole
        return (ToolOutput(call_id, missing),) if missing else ()

    # -- end of a call

    def _end(self, call_id: str, tool: str, state: Part) -> tuple[Fact, ...]:
        failed = state.get("status") == "error"
        error = (text(state.get("error")) or "the tool failed") if failed else None
        output, metadata = text(state.get("output")), mapping(state.get("metadata"))
        if tool == TASK_TOOL:
            return (SubagentDone(text(metadata.get("sessionId")) or call_id, _subagent_report(output), error),)
        if self._names.mcp(tool) is not None:
            return (McpDone(call_id, output, error),)
        arguments, duration = mapping(state.get("input")), _duration(state)
        match tool:
            case "invalid":
                return (ToolDone(call_id, error=error or output, duration_ms=duration),)
            case "bash":
                return (self._command_done(call_id, output, error, state, duration),)
            case "skill" if error is None:
                name = text(arguments.get("name"))
                return ToolDone(call_id, output, None, duration), *((SkillInvoked(name),) if name else ())
        files = effects_of(tool, arguments, metadata, self._cwd) if error is None else ()
        return (ToolDone(call_id, output, error, duration, files=files),)

    def _command_done(
        self, call_id: str, output: str, error: str | None, state: Part, duration: int | None
    ) -> ToolDone:
        metadata = mapping(state.get("metadata"))
        code = optional_whole(metadata.get("exit"))
        streamed = self._streamed.pop(call_id, "")
        printed, remarks, _ = text(metadata.get("output")).partition(SHELL_METADATA)
        if printed == NO_OUTPUT and not streamed:
            printed = ""
        if code is None and "exit" in metadata:
            code = STOPPED_EXIT_CODE
        if error is None and (code or remarks):
            error = output if printed or remarks else f"exit code {code}"
        stdout = printed if missing_text(printed, streamed) is not None else None
        return ToolDone(call_id, output, error, duration, stdout=stdout, exit_code=code)


def _shell(arguments: Part) -> ShellInvocation:
    return ShellInvocation(text(arguments.get("command")) or as_json(arguments), text(arguments.get("workdir")) or None)


def _duration(state: Part) -> int | None:
    time = mapping(state.get("time"))
    start, end = optional_whole(time.get("start")), optional_whole(time.get("end"))
    return end - start if start is not None and end is not None and end >= start else None


def _subagent_report(output: str) -> str:
    """Return the sub-agent's answer without the tags around it."""
    begin, end = _TASK_RESULT
    _, found, rest = output.partition(begin)
    return rest.rpartition(end)[0] if found and end in rest else output
