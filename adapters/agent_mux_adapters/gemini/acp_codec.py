"""Gemini CLI's dialect of ACP (`gemini --acp`).

It tells no inputs of tools (a title stands for them), names its tools only in the ids of their calls, and announces a
call that needs permission only by asking for it. What commands print, and how they exit, is told because the CLI is
started with `--debug` (see `argv.py` and `shell_report.py`).
"""

import re
import signal
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agent_mux.adapter import STDOUT, CodecContext, Source, Step
from agent_mux.facts import Fact, Failure, Ignored, Note, ThinkingDelta, TurnFailed, Usage
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.acp import AcpCall, AcpCodec, AcpQuirks, PromptOutcome, ToolReader, message_of
from agent_mux_adapters._dialects.acp.wire import THOUGHT
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.gemini import tools
from agent_mux_adapters.gemini.notices import GeminiStderr
from agent_mux_adapters.gemini.outcome import GUIDANCE, NO_ANSWER, failure_of
from agent_mux_adapters.gemini.tool_results import ShellReport, read_report

AUTH_REQUIRED = -32000
_NAME = re.compile(r"([a-z][\w-]*?)__")
_PLACE = re.compile(r".*_(\d{1,6})", re.DOTALL)
_MCP_TITLE = re.compile(r"(.+) \((.+) MCP Server\)", re.DOTALL)
_MODE = "[MODE_UPDATE] "
_MESSAGE = b'"agent_message_chunk"'
_THOUGHT = b'"agent_thought_chunk"'
_ABOUT_A_CALL = b'"toolCallId"'
_NO_SUBJECT = "****\n"
_LOST = "no previous sessions found"
_TOO_EARLY = "gemini's ACP mode cannot continue a session within the minute in which it was created"
_CONTEXT_FULL = "the conversation would exceed the context window of the model"
_ROUND_IN_CIRCLES = "gemini stopped by itself: it went round in circles, or reached the turn limit of its settings"


class GeminiTools(ToolReader):
    """What a tool call of Gemini CLI means."""

    def name(self, call: AcpCall) -> str:
        """The CLI makes its ids of the names."""
        match = _NAME.match(call.id)
        return match[1] if match is not None else super().name(call)

    def input(self, call: AcpCall) -> Any:
        """What the title, the change and the locations say of it."""
        if self._mcp(call) is not None:
            shown = "".join(text(mapping(item.get("content")).get("text")) for item in call.announced)
            given = load_object(shown.encode("utf-8", "replace"))
            return {"title": call.title} if given is None else given
        name = self.name(call)
        if name == tools.SHELL or call.kind == "execute":
            return {"command": call.title}
        path = next((diff.path for diff in call.diffs), next(iter(call.paths), ""))
        if name == tools.WRITE and call.diffs:
            return {"file_path": path, "content": call.diffs[0].new}
        return {"file_path": path} if name in (tools.READ, tools.WRITE) and path else _titled(path, call.title)

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """The title of an MCP tool names its server."""
        return self._mcp(call) or super().mcp(call, servers)

    def continues_step(self, call: AcpCall) -> bool:
        """The ids count the calls of one model call; the CLI runs them one after the other."""
        match = _PLACE.fullmatch(call.id)
        return match is not None and int(match[1]) > 0

    def result(self, call: AcpCall) -> Any:
        """Of a command: what it printed. The changes of an edit are file events."""
        return self._report(call).output if self._is_command(call) else self.output(call)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Both streams come as one."""
        return self._report(call).output or None, None

    def exit_code(self, call: AcpCall) -> int | None:
        """From the report of the shell tool."""
        return self._report(call).exit_code if self._is_command(call) and call.status != "failed" else None

    def error(self, call: AcpCall) -> str | None:
        """A command that fails is completed all the same."""
        if call.status == "failed" or not self._is_command(call):
            return super().error(call)
        return self._report(call).error

    def changes(self, call: AcpCall, diff: Any) -> Iterable[Any]:
        """`write_file` writes whole files."""
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
    """ACP, with what Gemini CLI says on standard error, and its thoughts without their wrapping."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, quirks_of(context))
        self._stderr = GeminiStderr(show_all=context.debug)
        self._thinks = False

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        chunk = self.chunk(line) if self._after_fragment and source is STDOUT else None
        said = self._updates.fragment(chunk) if chunk is not None else None
        if chunk is not None and said is not None:  # nearly all of them
            if chunk.kind == THOUGHT:
                return self._thought(said)
            self._thinks = False
            return said
        return self._other(line, source)

    def _other(self, line: bytes, source: Source) -> Iterable[Step]:
        if source is Source.STDERR:
            return self._stderr.receive(line, in_turn=self._session.prompts > 0)
        if source is Source.STDIN or _MESSAGE in line:
            self._thinks = False
            return AcpCodec.receive(self, line, source)
        if _THOUGHT in line:
            return self._thought(AcpCodec.receive(self, line, source))
        self._thinks = False
        if _ABOUT_A_CALL not in line:
            return AcpCodec.receive(self, line, source)
        # A call that was refused is not heard of again; the CLI makes one call after the other.
        refused = self._tools.end_silent()
        told = tuple(AcpCodec.receive(self, line, source))
        return (*refused, *(step for step in told if not isinstance(step, Ignored))) if refused else told

    def _thought(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Each thought comes whole: `**its subject**`, a line break, and the rest."""
        told = [_unwrapped(one, is_next=self._thinks) if isinstance(one, ThinkingDelta) else one for one in steps]
        self._thinks = ThinkingDelta in map(type, told)
        return told


def quirks_of(context: CodecContext) -> AcpQuirks:
    """Where Gemini CLI differs from the protocol, in this run."""

    def ended(how: PromptOutcome) -> Fact | None:
        return _ended(how, has_limit=context.max_turns is not None)

    return AcpQuirks(
        agent="gemini",
        tools=GeminiTools(),
        asks_questions=False,
        history_ends_with="available_commands_update",
        settings=lambda _context, _opened: (),  # all are on the command line
        takes_system_prompt=context.system_prompt_mode != "replace",
        asides={_MODE: lambda said: Note(f"gemini is in the mode {said.removeprefix(_MODE)}")},
        closing_fact=ended,
        failure=_failure_of,
        usage=_usage_of,
        signal_at_end=int(signal.SIGTERM),  # with an MCP server attached it never leaves by itself
    )


def _ended(how: PromptOutcome, *, has_limit: bool) -> Fact | None:
    match how.stop_reason:
        case "max_tokens":
            return TurnFailed(Failure("CONTEXT_EXCEEDED", _CONTEXT_FULL), how.cost)
        case "max_turn_requests" if not has_limit:
            return TurnFailed(Failure("AGENT_CRASH", _ROUND_IN_CIRCLES), how.cost)
        case "end_turn" if not how.spoke:
            return TurnFailed(Failure("AGENT_CRASH", NO_ANSWER), how.cost)
    return None


def _failure_of(error: RpcError) -> Failure | None:
    said = message_of(error)
    if _LOST in said.lower():
        return Failure("SESSION_NOT_FOUND", f"{said} ({_TOO_EARLY})")
    if error.code == AUTH_REQUIRED:
        return Failure("AUTH_ERROR", said, guidance=GUIDANCE)
    failure = failure_of(said, error.code)
    return failure if failure.code != "AGENT_CRASH" or failure.message != said else None


def _usage_of(result: Mapping[str, Any]) -> Usage | None:
    """Input and output of all model calls of the turn. The cached part of the input is not told, nor are thoughts."""
    counted = mapping(mapping(mapping(result.get("_meta")).get("quota")).get("token_count"))
    taken, given = whole(counted.get("input_tokens")), whole(counted.get("output_tokens"))
    return Usage(taken, given, of_one_call=False) if taken or given else None


def _unwrapped(step: ThinkingDelta, *, is_next: bool) -> Step:
    if step.text.startswith(_NO_SUBJECT):
        rest = step.text.removeprefix(_NO_SUBJECT)
        return ThinkingDelta(rest) if rest else Ignored("agent_thought_chunk", "an empty thought")
    return ThinkingDelta(f"\n\n{step.text}") if is_next and step.text.startswith("**") else step


def _titled(path: str, title: str) -> dict[str, str]:
    return {name: value for name, value in (("file_path", path), ("title", title)) if value}
