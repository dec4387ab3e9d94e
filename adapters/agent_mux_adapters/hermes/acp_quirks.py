"""Hermes over ACP (`hermes acp`): where it differs from the protocol. Only where the gateway cannot be started.

Its own tools have no `rawInput`, but a title and, once permission is asked for, their arguments. Those that read and
write files are not heard of again unless they fail. Errors of the provider are messages, with `end_turn`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from agent_mux.facts import Fact, Failure, Shell
from agent_mux_adapters._dialects.acp import AcpCall, AcpQuirks, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.calls import DELEGATION, SCRIPT, SHELL
from agent_mux_adapters.hermes.failures import failure_of
from agent_mux_adapters.hermes.servers import PREFIX

_TITLE = re.compile(r"(terminal|read|write|patch|search|delegate|python)(?: \([a-z]+\))?: (.*)", re.DOTALL)
_NAMES = {
    "terminal": SHELL,
    "read": "read_file",
    "write": "write_file",
    "patch": "patch",
    "search": "search_files",
    "delegate": DELEGATION,
    "python": SCRIPT,
}
_SILENT = frozenset({"read_file", "write_file", "patch"})
_RESULT = re.compile(r"terminal result\n(?:- \*\*output:\*\* (.*)\n)?- \*\*exit_code:\*\* (-?\d{1,9})", re.DOTALL)
_FAILURE = re.compile(r"(\w+) failed: (.*)", re.DOTALL)
_STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)


class HermesTools(ToolReader):
    """The meaning of Hermes' tool calls."""

    def name(self, call: AcpCall) -> str:
        """By the title, which begins with a word for the tool."""
        title = _TITLE.match(call.first_title)
        return _NAMES[title[1]] if title is not None else super().name(call)

    def input(self, call: AcpCall) -> Any:
        """What permission was asked for, else what the title tells."""
        arguments = mapping(call.raw_input).get("arguments")
        if isinstance(arguments, dict):
            return arguments
        shell = self.shell(call)
        if shell is not None:
            return {"command": shell.command}
        if self.name(call).startswith(PREFIX):
            return call.raw_input or {}  # none is told where there are none
        title = _TITLE.match(call.first_title)
        if title is not None and title[1] == "delegate":
            return {"goal": title[2]}
        return super().input(call)

    def shell(self, call: AcpCall) -> Shell | None:
        """Scripts and delegations are of the same kind, but run no command. Long commands are whole in the content."""
        if self.name(call) != SHELL:
            return None
        shown = text(mapping(mapping(next(iter(call.announced), None)).get("content")).get("text"))
        title = _TITLE.match(call.first_title)
        command = shown.removeprefix("$ ") if shown.startswith("$ ") else title[2] if title is not None else ""
        return Shell(command) if command else None

    def call_for(self, asked: AcpCall, open_calls: Sequence[AcpCall]) -> str | None:
        """Permission is asked for under an id of its own."""
        paths = {diff.path for diff in asked.diffs}
        command = text(mapping(asked.raw_input).get("command"))
        edits = [call.id for call in open_calls if call.kind == "edit" and paths & set(call.paths)]
        shells = ((call.id, self.shell(call)) for call in open_calls)
        runs = [call_id for call_id, shell in shells if shell is not None and shell.command == command]
        return next(reversed([*edits, *runs]), None)

    def output(self, call: AcpCall) -> str:
        """Of a command, without the frame around it."""
        shown = super().output(call)
        result = _RESULT.fullmatch(shown)
        if result is not None:
            return result[1] or ""
        return shown.removeprefix(f"{self.name(call)} result\n- **result:** ")

    def output_so_far(self, call: AcpCall) -> str:  # noqa: ARG002  # as in the base
        """There is none before the end."""
        return ""

    def exit_code(self, call: AcpCall) -> int | None:
        """Stands below the output."""
        result = _RESULT.fullmatch(super().output(call))
        return int(result[2]) if result is not None else super().exit_code(call)

    def error(self, call: AcpCall) -> str | None:
        """A tool of an MCP server that failed is called completed."""
        error = super().error(call)
        failed = _FAILURE.fullmatch(self.output(call))
        if failed is None or (error is None and failed[1] != self.name(call)):
            return error
        return failed[2]

    def ends_silently(self, call: AcpCall) -> bool:
        """Those that work on files."""
        return call.name in _SILENT


_ERRORS = (*(f"HTTP {status}: " for status in _STATUSES), "API call failed after ", "Context length exceeded (")
_QUEUED = "Queued for the next turn. ("
_NOT_OVER = Failure("AGENT_CRASH", "hermes still works on the turn that was interrupted, and has queued the prompt")
_ASIDES: dict[str, Callable[[str], Fact | Failure]] = {
    **dict.fromkeys(_ERRORS, failure_of),
    _QUEUED: lambda _: _NOT_OVER,
}
QUIRKS = AcpQuirks(agent="hermes", tools=HermesTools(), asides=_ASIDES)
