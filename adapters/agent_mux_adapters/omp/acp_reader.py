"""omp over ACP (`omp acp`), to read recordings only: runs use rpc mode, which reports more.

Calls do not contain the tool's name, but inputs and results are those of rpc mode. Errors of the provider come as
messages, followed by `end_turn`. Known from omp's `src/modes/acp/acp-event-mapper.ts`, 18.2.3.
"""

import re
from collections.abc import Collection

from agent_mux.sdk.facts import Fact, Failure, FileEffect, ShellInvocation, TextDelta
from agent_mux.sdk.unified_diff import relative_to
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters._dialects.pi.flavor import ShellResult
from agent_mux_adapters._dialects.pi.outcome import failure_of
from agent_mux_adapters._dialects.pi.tool_results import PiToolResult, read_result
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.omp.tools import DELEGATING, FILE_EFFECTS, read_shell_result, shell_of, split_mcp_name

_NAMES = {"read": "read", "fetch": "web_search", "think": "todo"}
_TITLE = re.compile(r"(mcp__\w{1,200}|ask|ast_edit|debug|github|hub|lsp|task|think|yield)(?:: .*)?", re.DOTALL)
"""A title of the form `name: subject` or `name`; the title is the model's intent where it gave one."""
_STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)
_PROVIDER_ERROR = re.compile(r"\d{3} .*\n.*\(type=\w+[^)]*\)(?:\nraw-http-request=.*)?\Z", re.DOTALL)
"""An error of the provider: status and message, then both again in detail."""


class OmpAcpTools(ToolReader):
    """The meaning of omp's tool calls."""

    def name(self, call: AcpCall) -> str:
        """Return the tool's name, from its kind and its input; else from the title, if that contains a name."""
        given = mapping(call.raw_input)
        match call.kind:
            case "execute":
                return "bash" if "command" in given else "write" if "content" in given else "eval"
            case "edit":
                return "write" if "content" in given else "edit"
            case "search":
                return "grep" if "pattern" in given else "ast_grep" if "pat" in given else "glob"
            case kind if kind in _NAMES:
                return _NAMES[kind]
        title = _TITLE.fullmatch(call.first_title)
        return title[1] if title is not None else "task" if _is_task(call) else "tool"

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the command of a foreground call."""
        return shell_of(self.name(call), mapping(call.raw_input))

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Return server and tool, if the title contains the name of an MCP tool."""
        return split_mcp_name(self.name(call), servers)

    def subagent(self, call: AcpCall) -> tuple[str, str] | None:
        """Return the agent and its task, if the call starts a sub-agent."""
        given, name = mapping(call.raw_input), self.name(call)
        return (text(given.get("agent")) or name, text(given.get("task"))) if name in DELEGATING else None

    def output(self, call: AcpCall) -> str:
        """Return the text that the model sees."""
        return self._result(call).shown

    def output_so_far(self, call: AcpCall) -> str:
        """Return the output of the command so far."""
        return self._shell_result(call).stdout

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return the output as stdout; omp merges both streams."""
        return self._shell_result(call).stdout, None

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code of a command; None if it did not exit."""
        return self._shell_result(call).exit_code if call.is_shell else None

    def error(self, call: AcpCall) -> str | None:
        """Return the error of a failed call; a command with a nonzero exit code is one."""
        return self._result(call).error if call.status == "failed" else None

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """Return the effects on files, from the details of the result as in rpc mode."""
        effects = FILE_EFFECTS.get(call.name)
        if effects is None:
            return ()
        done = effects(mapping(call.raw_input), self._result(call).details)
        return tuple(relative_to(cwd, effect) for effect in done)

    def _shell_result(self, call: AcpCall) -> ShellResult:
        result = self._result(call)
        return read_shell_result(result.shown, result.details, result.failed)

    def _result(self, call: AcpCall) -> PiToolResult:
        return read_result(call.id, call.raw_output, failed=call.status == "failed")


def _is_task(call: AcpCall) -> bool:
    given = mapping(call.raw_input)
    return "agent" in given and "task" in given


def _message_or_failure(message: str) -> Fact | Failure:
    return failure_of(message) if _PROVIDER_ERROR.fullmatch(message) else TextDelta(message)


QUIRKS = AcpQuirks(
    agent="omp",
    tools=OmpAcpTools(),
    plan_repeats_tool_call=True,
    asides={f"{status} ": _message_or_failure for status in _STATUSES},
)
