"""Hermes over ACP (`hermes acp`): its differences from the protocol. Used only where the gateway cannot be started.

- Hermes' own tools have no `rawInput`: they have a title and, once permission is asked for, their arguments.
- Tools that read and write files report no end unless they fail.
- Errors of the provider are messages of the model, followed by the stop reason `end_turn`.
- The first text after a tool call begins with line breaks, which are removed.
- A call that a rule of ours denies without a permission request is reported as denied, as over the gateway.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace as replace_protocol
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.adapter import NativeProtocol
from agent_mux.sdk.codec import STDOUT, CodecContext, CodecOutput, Source
from agent_mux.sdk.facts import (
    ApprovalRequested,
    Fact,
    Failure,
    RequestResolved,
    ShellInvocation,
    TextDelta,
    ToolDone,
    ToolReady,
)
from agent_mux_adapters._dialects.acp import AcpCall, AcpCodec, AcpQuirks, ToolReader, acp_protocol
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.hermes.approvals import DENIED_BY_RULE, denied_action
from agent_mux_adapters.hermes.mcp_servers import is_mcp_tool
from agent_mux_adapters.hermes.messages import LINE_BREAK
from agent_mux_adapters.hermes.outcome import failure_of
from agent_mux_adapters.hermes.tools import DELEGATION, SCRIPT, SHELL

_TITLE = re.compile(r"(terminal|read|write|patch|search|delegate|python)(?: \([a-z]+\))?: (.*)", re.DOTALL)
_TOOL_NAMES = {
    "terminal": SHELL,
    "read": "read_file",
    "write": "write_file",
    "patch": "patch",
    "search": "search_files",
    "delegate": DELEGATION,
    "python": SCRIPT,
}
"""First word of a title -> name of the tool."""
_WITHOUT_END = frozenset({"read_file", "write_file", "patch"})
_COMMAND_RESULT = re.compile(
    r"terminal result\n(?:- \*\*output:\*\* (.*)\n)?- \*\*exit_code:\*\* (-?\d{1,9})", re.DOTALL
)
_FAILURE = re.compile(r"(\w+) failed: (.*)", re.DOTALL)


class HermesAcpTools(ToolReader):
    """Reads the tool calls of `hermes acp`."""

    def name(self, call: AcpCall) -> str:
        """Return the tool named by the first word of the title."""
        title = _TITLE.match(call.first_title)
        return _TOOL_NAMES[title[1]] if title is not None else super().name(call)

    def input(self, call: AcpCall) -> Any:
        """Return the arguments that permission was asked for, else what the title contains of them."""
        arguments = mapping(call.raw_input).get("arguments")
        if isinstance(arguments, dict):
            return arguments
        shell = self.shell(call)
        if shell is not None:
            return {"command": shell.command}
        if is_mcp_tool(self.name(call)):
            return call.raw_input or {}  # Hermes omits empty arguments
        title = _TITLE.match(call.first_title)
        if title is not None and title[1] == "delegate":
            return {"goal": title[2]}
        return super().input(call)

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the command of a call of `terminal`; scripts and delegations have the same kind, but run none.

        The title shortens long commands; the content has them in full.
        """
        if self.name(call) != SHELL:
            return None
        shown = text(mapping(mapping(next(iter(call.announced), None)).get("content")).get("text"))
        title = _TITLE.match(call.first_title)
        command = shown.removeprefix("$ ") if shown.startswith("$ ") else title[2] if title is not None else ""
        return ShellInvocation(command) if command else None

    def call_for(self, asked: AcpCall, open_calls: Sequence[AcpCall]) -> str | None:
        """Return the open call with the same files or command: permission is asked for under an id of its own."""
        paths = {diff.path for diff in asked.diffs}
        command = text(mapping(asked.raw_input).get("command"))
        edits = [call.id for call in open_calls if call.kind == "edit" and paths & set(call.paths)]
        shells = ((call.id, self.shell(call)) for call in open_calls)
        runs = [call_id for call_id, shell in shells if shell is not None and shell.command == command]
        return next(reversed([*edits, *runs]), None)

    def output(self, call: AcpCall) -> str:
        """Return the output without the Markdown frame around it."""
        shown = super().output(call)
        result = _COMMAND_RESULT.fullmatch(shown)
        if result is not None:
            return result[1] or ""
        return shown.removeprefix(f"{self.name(call)} result\n- **result:** ")

    def output_so_far(self, call: AcpCall) -> str:  # noqa: ARG002  # as in the base
        """Return nothing: Hermes shows no output before the end."""
        return ""

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code in the frame around the output."""
        result = _COMMAND_RESULT.fullmatch(super().output(call))
        return int(result[2]) if result is not None else super().exit_code(call)

    def error(self, call: AcpCall) -> str | None:
        """Return the error of a failed call. A failed MCP tool has the status `completed` and an error text."""
        error = super().error(call)
        failed = _FAILURE.fullmatch(self.output(call))
        if failed is None or (error is None and failed[1] != self.name(call)):
            return error
        return failed[2]

    def ends_silently(self, call: AcpCall) -> bool:
        """Return whether the call is of a file tool, whose success is not reported."""
        return call.name in _WITHOUT_END


_STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)
_ERROR_PREFIXES = (*(f"HTTP {status}: " for status in _STATUSES), "API call failed after ", "Context length exceeded (")
_QUEUED_PREFIX = "Queued for the next turn. ("
_STILL_WORKING = Failure(
    "AGENT_CRASH", "hermes still works on the turn that was interrupted, and has queued the prompt"
)
_FAILURE_MESSAGES: dict[str, Callable[[str], Fact | Failure]] = {
    **dict.fromkeys(_ERROR_PREFIXES, failure_of),
    _QUEUED_PREFIX: lambda _: _STILL_WORKING,
}
"""Prefix of a message of the model that is an error -> the failure it describes."""
QUIRKS = AcpQuirks(agent="hermes", tools=HermesAcpTools(), asides=_FAILURE_MESSAGES)


class HermesAcpCodec(AcpCodec):
    """Codec of `hermes acp`; without a prompt in the context it reads the transcript of another client."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, QUIRKS)
        self._in_text = False
        self._commands: dict[str, str] = {}

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line as the dialect does, and correct its facts."""
        steps = super().receive(line, source)
        match steps:
            case (TextDelta(),) if self._in_text:  # the most frequent case
                return steps
        if source is not STDOUT:
            return steps
        return [corrected for step in steps for corrected in self._corrected(step)]

    def _corrected(self, step: CodecOutput) -> tuple[CodecOutput, ...]:
        was_in_text = self._in_text
        self._in_text = isinstance(step, TextDelta) or (was_in_text and not isinstance(step, Fact))
        match step:
            case TextDelta() if not was_in_text:
                return (TextDelta(step.text.removeprefix(LINE_BREAK)),)
            case ToolReady(shell=shell) if shell is not None:
                self._commands[step.call_id] = shell.command
            case ToolDone():
                return self._tool_done(step, self._commands.pop(step.call_id, ""))
        return (step,)

    def _tool_done(self, done: ToolDone, command: str) -> tuple[CodecOutput, ...]:
        action = denied_action(done.error or "")
        if action is None or not command:
            return (done,)
        key = f"rule:{done.call_id}"
        return (
            ApprovalRequested(key, action, command, "medium", done.name, done.call_id, command),
            RequestResolved(key, granted=False, reason=DENIED_BY_RULE),
            replace(done, stdout=None, exit_code=None),  # the command never ran
        )


def hermes_acp_protocol() -> NativeProtocol:
    """Return the native protocol with its losses in comparison to the gateway."""
    protocol = acp_protocol(
        QUIRKS,
        chosen_for="all runs, where that Python is not found",
        loses=(
            "inputs of its own tools, unless permission is asked for: a title stands for them",
            "the end of calls that read or write files, unless they fail",
            "retries, and the tokens of each model call",
            "questions",
            "what sub-agents do",
            "the output of commands while they run",
            "stderr of commands apart from stdout",
        ),
    )
    return replace_protocol(protocol, codec=HermesAcpCodec)
