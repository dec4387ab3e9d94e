"""The ACP codec of Gemini CLI (`gemini --acp`), and the meaning of its tool calls.

The CLI reports no tool inputs (a title stands for them), names tools only in the ids of their calls, and announces a
call that needs permission only by the permission request. The output of commands and their exit codes are reported
because the CLI is started with `--debug` (see `argv.py` and `tool_results.py`).
"""

import re
import signal
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk.codec import STDOUT, CodecContext, CodecOutput, Source
from agent_mux.sdk.facts import (
    Fact,
    Failure,
    Ignored,
    Note,
    ShellInvocation,
    TextEnd,
    ThinkingDelta,
    TurnFailed,
    Usage,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.acp import AcpCall, AcpCodec, AcpQuirks, PromptOutcome, ToolReader, message_of
from agent_mux_adapters._dialects.acp.wire import THOUGHT
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.gemini import tools
from agent_mux_adapters.gemini.notices import GeminiStderr
from agent_mux_adapters.gemini.outcome import GUIDANCE, NO_ANSWER, failure_of
from agent_mux_adapters.gemini.tool_results import ShellReport, read_report

AUTH_REQUIRED = -32000
_NAME = re.compile(r"([a-z][\w-]*?)(?:__|-\d{13}(?:-\d{1,6})?\Z)")
"""The name of the tool in a call id: `replace__replace_1795411110534_0`, or until 0.36 `replace-1795411110534-2`."""
_PLACE = re.compile(r".*_(\d{1,6})", re.DOTALL)
_EXPLANATION = re.compile(r" ?\[current working directory [^\n]*\](?: \(.*\))?\Z", re.DOTALL)
"""What 0.33 appends to the title of a command, and 0.36 emits as a thought of its own."""
_MCP_TITLE = re.compile(r"(.+) \((.+) MCP Server\)", re.DOTALL)
_MODE = "[MODE_UPDATE] "
_MESSAGE = b'"agent_message_chunk"'
_THOUGHT = b'"agent_thought_chunk"'
_ABOUT_A_CALL = b'"toolCallId"'
_NO_SUBJECT = "****\n"
_LOST = "no previous sessions found"
_TOO_EARLY = "gemini's ACP mode cannot continue a session within the minute in which it was created"
_CONTEXT_FULL = "the conversation would exceed the context window of the model"
_ROUND_IN_CIRCLES = "gemini stopped by itself: it detected a loop, or reached the turn limit of its settings"


class GeminiTools(ToolReader):
    """The meaning of tool calls of Gemini CLI."""

    def name(self, call: AcpCall) -> str:
        """Return the tool's name, with which the CLI begins the call id."""
        match = _NAME.match(call.id)
        return match[1] if match is not None else super().name(call)

    def input(self, call: AcpCall) -> Any:
        """Return a substitute for the unreported input, built from title, changes and locations."""
        if self._mcp(call) is not None:
            shown = "".join(text(mapping(item.get("content")).get("text")) for item in call.announced)
            arguments = load_object(shown.encode("utf-8", "replace"))
            return {"title": call.title} if arguments is None else arguments
        name = self.name(call)
        if name == tools.SHELL or call.kind == "execute":
            return {"command": _EXPLANATION.sub("", call.title)}
        path = next((diff.path for diff in call.diffs), next(iter(call.paths), ""))
        if name == tools.WRITE and call.diffs:
            return {"file_path": path, "content": call.diffs[0].new}
        return {"file_path": path} if name in (tools.READ, tools.WRITE) and path else _titled(path, call.title)

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the foreground command that the call runs, which is its title."""
        shell = super().shell(call)
        return None if shell is None else replace(shell, command=_EXPLANATION.sub("", shell.command))

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Return the MCP server and tool, which the title of an MCP call names."""
        return self._mcp(call) or super().mcp(call, servers)

    def continues_step(self, call: AcpCall) -> bool:
        """Return whether the id marks a later call of the same model call; the CLI runs them in sequence."""
        match = _PLACE.fullmatch(call.id)
        return match is not None and int(match[1]) > 0

    def result(self, call: AcpCall) -> Any:
        """Return what a command printed; for other calls the output. Edits are reported as file events."""
        return self._report(call).output if self._is_command(call) else self.output(call)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return the output of a command, in which both streams are merged."""
        return self._report(call).output or None, None

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code from the report of the shell tool."""
        return self._report(call).exit_code if self._is_command(call) and call.status != "failed" else None

    def error(self, call: AcpCall) -> str | None:
        """Return the error; the CLI also completes a command that failed."""
        if call.status == "failed" or not self._is_command(call):
            return super().error(call)
        return self._report(call).error

    def changes(self, call: AcpCall, diff: Any) -> Iterable[Any]:
        """Return the written file for `write_file`, which always writes whole files."""
        if self.name(call) == tools.WRITE:
            return (tools.written(diff.path, diff.new, created=not diff.old),)
        return super().changes(call, diff)

    def _mcp(self, call: AcpCall) -> tuple[str, str] | None:
        match = _MCP_TITLE.fullmatch(call.title)
        return (match[2], match[1]) if match is not None else None

    def _is_command(self, call: AcpCall) -> bool:
        return call.kind == "execute"

    def _report(self, call: AcpCall) -> ShellReport:
        return read_report("\n".join(call.texts))


class GeminiAcpCodec(AcpCodec):
    """The ACP codec, with retries read from stderr and thoughts without their markup."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, quirks_of(context))
        self._stderr = GeminiStderr(show_all=context.debug)
        self._after_thought = False

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps of one line."""
        chunk = self.chunk(line) if self._after_fragment and source is STDOUT else None
        facts = self._updates.fragment(chunk) if chunk is not None else None
        if chunk is not None and facts is not None:  # the common case
            if chunk.kind == THOUGHT:
                return self._thought(facts)
            self._after_thought = False
            return facts
        return self._other(line, source)

    def _other(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        if source is Source.STDERR:
            return self._stderr.receive(line, in_turn=self._session.prompts > 0)
        if source is Source.STDIN or _MESSAGE in line:
            self._after_thought = False
            return AcpCodec.receive(self, line, source)
        if _THOUGHT in line:
            return self._thought(AcpCodec.receive(self, line, source))
        self._after_thought = False
        if _ABOUT_A_CALL not in line:
            return AcpCodec.receive(self, line, source)
        # The CLI does not report the end of a refused call; it makes one call after the other.
        refused = self._tools.end_silent()
        received = tuple(AcpCodec.receive(self, line, source))
        return (*refused, *(step for step in received if not isinstance(step, Ignored))) if refused else received

    def _thought(self, steps: Iterable[CodecOutput]) -> Iterable[CodecOutput]:
        """Separate thoughts by blank lines: each arrives whole as `**subject**`, a line break, and the text."""
        steps = [step for step in steps if not isinstance(step, ThinkingDelta) or not _EXPLANATION.match(step.text)]
        separated = [
            _without_markup(step, is_next=self._after_thought) if isinstance(step, ThinkingDelta) else step
            for step in steps
        ]
        self._after_thought = ThinkingDelta in map(type, separated)
        return separated or (TextEnd(),)  # the CLI's own description of the command that follows


def quirks_of(context: CodecContext) -> AcpQuirks:
    """Return the differences of Gemini CLI from the protocol in this run."""

    def ended(outcome: PromptOutcome) -> Fact | None:
        return _ended(outcome, has_limit=context.max_turns is not None)

    return AcpQuirks(
        agent="gemini",
        tools=GeminiTools(),
        asks_questions=False,
        history_ends_with="available_commands_update",
        settings=lambda _context, _opened: (),  # all settings are on the command line
        takes_system_prompt=context.system_prompt_mode != "replace",
        asides={_MODE: lambda message_text: Note(f"gemini is in the mode {message_text.removeprefix(_MODE)}")},
        closing_fact=ended,
        failure=_failure_of,
        usage=_usage_of,
        signal_at_end=int(signal.SIGTERM),  # it never exits by itself while an MCP server is connected
    )


def _ended(outcome: PromptOutcome, *, has_limit: bool) -> Fact | None:
    match outcome.stop_reason:
        case "max_tokens":
            return TurnFailed(Failure("CONTEXT_EXCEEDED", _CONTEXT_FULL), outcome.cost)
        case "max_turn_requests" if not has_limit:
            return TurnFailed(Failure("AGENT_CRASH", _ROUND_IN_CIRCLES), outcome.cost)
        case "end_turn" if not outcome.spoke:
            return TurnFailed(Failure("EMPTY_ANSWER", NO_ANSWER), outcome.cost)
    return None


def _failure_of(error: RpcError) -> Failure | None:
    message_text = message_of(error)
    if _LOST in message_text.lower():
        return Failure("SESSION_NOT_FOUND", f"{message_text} ({_TOO_EARLY})")
    if error.code == AUTH_REQUIRED:
        return Failure("AUTH_ERROR", message_text, guidance=GUIDANCE)
    failure = failure_of(message_text, error.code)
    return failure if failure.code != "AGENT_CRASH" or failure.message != message_text else None


def _usage_of(result: Mapping[str, Any]) -> Usage | None:
    """Return input and output tokens of the turn's model calls. Cached and thinking tokens are not reported."""
    counts = mapping(mapping(mapping(result.get("_meta")).get("quota")).get("token_count"))
    input_tokens, output_tokens = whole(counts.get("input_tokens")), whole(counts.get("output_tokens"))
    return Usage(input_tokens, output_tokens, of_one_call=False) if input_tokens or output_tokens else None


def _without_markup(step: ThinkingDelta, *, is_next: bool) -> CodecOutput:
    if step.text.startswith(_NO_SUBJECT):
        rest = step.text.removeprefix(_NO_SUBJECT)
        return ThinkingDelta(rest) if rest else Ignored("agent_thought_chunk", "an empty thought")
    return ThinkingDelta(f"\n\n{step.text}") if is_next and step.text.startswith("**") else step


def _titled(path: str, title: str) -> dict[str, str]:
    return {name: value for name, value in (("file_path", path), ("title", title)) if value}
