"""omp over ACP (`omp acp`): only read. Rpc mode, which tells more, is what we start.

The tools are not named, but their inputs and results are those of rpc mode. Errors of the provider are messages, with
`end_turn`. Source: `src/modes/acp/acp-event-mapper.ts`, 18.2.3.
"""

import re
from collections.abc import Collection

from agent_mux.facts import Fact, Failure, FileEffect, Shell, TextDelta
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters._dialects.pi.failures import failure_of
from agent_mux_adapters._dialects.pi.flavor import Printed
from agent_mux_adapters._dialects.pi.results import Result, read_result
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters._dialects.unified_diff import relative_to
from agent_mux_adapters.omp.tools import DELEGATING, EFFECTS, printed, shell_of, split_mcp_name

_NAMES = {"read": "read", "fetch": "web_search", "think": "todo"}
_TITLE = re.compile(r"(mcp__\w{1,200}|ask|ast_edit|debug|github|hub|lsp|task|think|yield)(?:: .*)?", re.DOTALL)
"""`name: subject` or `name`, where the model said no intent."""
_STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)
_PROVIDER_ERROR = re.compile(r"\d{3} .*\n.*\(type=\w+[^)]*\)(?:\nraw-http-request=.*)?\Z", re.DOTALL)
"""The status and the words of a provider, and then both again."""


class OmpTools(ToolReader):
    """What a tool call means."""

    def name(self, call: AcpCall) -> str:
        """By its kind and what only this tool takes; else the title, where that is a name."""
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

    def shell(self, call: AcpCall) -> Shell | None:
        """A foreground command."""
        return shell_of(self.name(call), mapping(call.raw_input))

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """By the name, where the title tells it."""
        return split_mcp_name(self.name(call), servers)

    def subagent(self, call: AcpCall) -> tuple[str, str] | None:
        """The agent and its task."""
        given, name = mapping(call.raw_input), self.name(call)
        return (text(given.get("agent")) or name, text(given.get("task"))) if name in DELEGATING else None

    def output(self, call: AcpCall) -> str:
        """What the model was shown."""
        return self._result(call).shown

    def output_so_far(self, call: AcpCall) -> str:
        """What the command printed so far."""
        return self._printed_by(call).stdout

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Both streams come as one."""
        return self._printed_by(call).stdout, None

    def exit_code(self, call: AcpCall) -> int | None:
        """How the command exited, where it did."""
        return self._printed_by(call).exit_code if call.is_shell else None

    def error(self, call: AcpCall) -> str | None:
        """A command that exits with a status is a call that fails."""
        return self._result(call).error if call.status == "failed" else None

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """By the details of the result, as in rpc mode."""
        effects = EFFECTS.get(call.name)
        if effects is None:
            return ()
        done = effects(mapping(call.raw_input), self._result(call).details)
        return tuple(relative_to(cwd, effect) for effect in done)

    def _printed_by(self, call: AcpCall) -> Printed:
        result = self._result(call)
        return printed(result.shown, result.details, result.failed)

    def _result(self, call: AcpCall) -> Result:
        return read_result(call.id, call.raw_output, failed=call.status == "failed")


def _is_task(call: AcpCall) -> bool:
    given = mapping(call.raw_input)
    return "agent" in given and "task" in given


def _said(words: str) -> Fact | Failure:
    return failure_of(words) if _PROVIDER_ERROR.fullmatch(words) else TextDelta(words)


QUIRKS = AcpQuirks(
    agent="omp",
    tools=OmpTools(),
    plan_repeats_tool_call=True,
    asides={f"{status} ": _said for status in _STATUSES},
)
