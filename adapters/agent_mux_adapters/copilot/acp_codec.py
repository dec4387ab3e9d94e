"""`copilot --acp`: Copilot over the Agent Client Protocol, for transcripts of clients that use that.

Compared with the headless protocol it lacks retries, the compaction of the context, questions, and the tokens of each
model call. The tool calls of a sub-agent look like those of the agent itself; in the background its messages do, too.
Our own runs do not use it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent_mux.sdk.adapter import NativeProtocol
from agent_mux.sdk.codec import STDOUT, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import Fact, Failure, FileEffect, Ignored, Note, ShellInvocation, StepBegin, TurnFailed, Usage
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.acp import (
    AcpCall,
    AcpCodec,
    AcpQuirks,
    PromptOutcome,
    ToolReader,
    default_usage,
    is_acp_line,
)
from agent_mux_adapters._dialects.acp.wire import THOUGHT
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.copilot.outcome import error_code_of
from agent_mux_adapters.copilot.tool_results import EXIT_LINE, NOT_EXITED, file_effects_of
from agent_mux_adapters.copilot.tools import shell_of
from agent_mux_adapters.copilot.wire import EDIT_TOOL, READ_TOOL, SUBAGENT_TOOL, WRITE_TOOL

_INFO = "Info: "
_ERROR = "Error: "
_NOT_A_MESSAGE = (_INFO, _ERROR)
_ERROR_LINE = b'"text":"Error: '
_ANSWER = b'"stopReason"'
_USAGE = b'"usage_update"'
_INFO_LINE = b'"text":"Info: '
_CHUNK = b'_chunk"'
_THOUGHT = b'"agent_thought_chunk"'
_CALL = b'"tool_call'
_SUBAGENT_TEXT = Ignored("agent_message_chunk", "a sub-agent's text; the result of the call contains the last message")
_CAPTION = Ignored("agent_thought_chunk", "a caption for a running tool call")
_HELD = Ignored("agent_message_chunk", "a message or a failure: the next line decides")
_NAMES_BY_FIELD = {
    "file_text": WRITE_TOOL,
    "old_str": EDIT_TOOL,
    "agent_type": SUBAGENT_TOOL,
    "query": "sql",
    "delay": "read_bash",
}
_NAMES_BY_TITLE = {"Viewing ": READ_TOOL, "Searching for ": "grep", "Finding files ": "glob"}


class CopilotAcpTools(ToolReader):
    """Reader of tool calls. Their titles are descriptions; their inputs and outputs are those of Copilot's tools."""

    def name(self, call: AcpCall) -> str:
        """Return the tool, recognized by its input or its title. The title of an unknown tool is its name."""
        if call.kind == "execute":
            return "bash"
        fields = mapping(call.raw_input)
        by_field = next((name for field, name in _NAMES_BY_FIELD.items() if field in fields), None)
        by_title = next((name for title, name in _NAMES_BY_TITLE.items() if call.first_title.startswith(title)), None)
        return by_field or by_title or super().name(call)

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the command of a foreground shell call; None for any other call."""
        return shell_of(self.name(call), call.raw_input)

    def subagent(self, call: AcpCall) -> tuple[str, str] | None:
        """Return the type of the sub-agent and its prompt; None when the call starts none."""
        fields = mapping(call.raw_input)
        name, prompt = text(fields.get("agent_type")), text(fields.get("prompt"))
        return (name, prompt) if name and prompt else None

    def output(self, call: AcpCall) -> str:
        """Return the text that the model gets."""
        return text(mapping(call.raw_output).get("content")) or super().output(call)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return stdout without the line about the exit, and no stderr: Copilot merges both streams."""
        shown = self.output(call)
        exit_line = EXIT_LINE.search(shown)
        return (shown[: exit_line.start()] or None if exit_line is not None else None), None

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code; -1 for a command that continues in the background, None for any other call."""
        if not call.is_shell or call.status != "completed":
            return None
        codes = [row.get("exitCode") for row in rows(mapping(call.raw_output).get("contents"))]
        code = next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)
        exit_line = EXIT_LINE.search(self.output(call))
        if code is None and exit_line is not None:
            return int(exit_line[1])
        return NOT_EXITED if code is None else code

    def error(self, call: AcpCall) -> str | None:
        """Return why the call failed. A command that continues in the background did not fail."""
        return None if self.exit_code(call) == NOT_EXITED else super().error(call)

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """Return the effects on files, from the input and the result of the call."""
        name = self.name(call)
        if name in (READ_TOOL, WRITE_TOOL, EDIT_TOOL):
            return file_effects_of(name, call.raw_input, {"result": call.raw_output}, cwd)
        return super().files(call, cwd) if call.kind == "edit" else ()


def _info(message: str) -> Fact:
    info = message.removeprefix(_INFO)
    if info.startswith("/"):
        return Ignored("agent_message_chunk", "the call that created the file reports it")
    return Note(info)


QUIRKS = AcpQuirks(
    agent="copilot",
    tools=CopilotAcpTools(),
    asides={_INFO: _info},
    usage_is_cumulative=True,
    plan_repeats_tool_call=True,
)


class CopilotAcpCodec(AcpCodec):
    """ACP with Copilot's conventions, which depend on the order of lines.

    A `usage_update` precedes the output of each model call. A failure is a message that begins with "Error: " and is
    the last message of the turn.
    """

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, replace(QUIRKS, closing_fact=self._turn_failure, usage=self._usage))
        self._held: bytes | None = None
        """A line with a message that may be a failure; the next line decides."""
        self._failure: Failure | None = None
        self._counted: Usage | None = None
        """The tokens of the process so far."""
        self._is_in_model_call = True
        """Whether a model call has begun since the last tool call."""
        self._has_output = False
        """Whether that model call has returned a message or a thought."""
        self._is_next_step_due = False
        """Whether another model call has begun since, without a tool call between them: its output begins a step."""
        self._is_streaming = False
        """Whether the last line was a fragment of the agent's own output. Another fragment changes none of these."""

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Return the steps for one line."""
        if source is not STDOUT:
            return super().receive(line, source)
        chunk = self.chunk(line) if self._is_streaming else None
        if chunk is not None and (self._is_in_model_call or chunk.kind != THOUGHT):
            facts = self._updates.fragment(chunk) if not chunk.content.text.startswith(_NOT_A_MESSAGE) else None
            if facts is not None:  # nearly all fragments
                return facts
        self._is_streaming = False
        return self._read(line) if self._held is None and _ERROR_LINE not in line else self._read_around_held(line)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002  # as in the contract
        """Return the held message and the facts that the dialect kept back, when the process has exited."""
        return *self._release(), *super().finish(exit)

    # -- model calls

    def _read(self, line: bytes) -> Iterable[CodecOutput]:
        if _CHUNK in line and _INFO_LINE not in line:
            return self._chunk(line)
        if _USAGE in line:
            self._is_in_model_call, self._is_next_step_due, self._has_output = True, self._has_output, False
        elif _CALL in line or _ANSWER in line:
            self._is_in_model_call, self._is_next_step_due, self._has_output = _ANSWER in line, False, False
        return super().receive(line, STDOUT)

    def _chunk(self, line: bytes) -> Iterable[CodecOutput]:
        if any(call.is_subagent for call in self._tools.open):
            return (_SUBAGENT_TEXT,)
        if not self._is_in_model_call and _THOUGHT in line:
            return (_CAPTION,)
        steps = super().receive(line, STDOUT)
        again, self._is_next_step_due, self._has_output = self._is_next_step_due, False, self._session.in_turn
        self._is_streaming = self._after_fragment
        return (StepBegin(), *steps) if again else steps

    # -- a message that may be a failure is held until the next line

    def _read_around_held(self, line: bytes) -> Iterable[CodecOutput]:
        if self._held is not None and _USAGE in line:
            return self._read(line)
        if self._held is not None and _ANSWER in line:
            message = _message_text(self._held).removeprefix(_ERROR)
            self._failure, self._held = Failure(error_code_of(message), message), None
            return self._read(line)
        released = self._release()
        if not _message_text(line).startswith(_ERROR):
            return *released, *self._read(line)
        self._held, self._is_streaming = line, False
        return *released, _HELD

    def _release(self) -> tuple[CodecOutput, ...]:
        held, self._held = self._held, None
        return () if held is None else tuple(self._read(held))

    # -- the end of a turn

    def _turn_failure(self, ended: PromptOutcome) -> Fact | None:
        failure, self._failure = self._failure, None
        return None if failure is None else TurnFailed(failure, ended.cost)

    def _usage(self, result: Mapping[str, Any]) -> Usage | None:
        """Return the tokens of the process so far; None after a failed turn, which reports the same counts again."""
        before, self._counted = self._counted, default_usage(result) or self._counted
        return None if self._counted == before else self._counted


def _message_text(line: bytes) -> str:
    """Return the text of an `agent_message_chunk`; empty for any other line."""
    update = mapping(mapping(mapping(load_object(line)).get("params")).get("update"))
    if update.get("sessionUpdate") != "agent_message_chunk":
        return ""
    return text(mapping(update.get("content")).get("text"))


ACP_PROTOCOL = NativeProtocol(
    name="acp",
    codec=CopilotAcpCodec,
    streams=frozenset({"text", "thinking"}),
    two_way=True,
    sniff=is_acp_line,
    loses=(
        "retries",
        "the compaction of the context",
        "questions",
        "the tokens of each model call",
        "sub-agents: their actions look like those of the agent itself",
        "streaming of tool inputs",
        "stderr of commands: it is merged into stdout",
    ),
)
