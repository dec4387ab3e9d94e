"""`copilot --acp`: Copilot behind the Agent Client Protocol, for whoever already speaks that.

It loses what the headless protocol tells: retries, the compaction of the context, questions, and the tokens of each
model call. What a sub-agent does looks as if the agent itself did it, and in the background also what it says.
No run of ours uses it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent_mux.adapter import STDOUT, CodecContext, Exit, NativeProtocol, Source, Step
from agent_mux.facts import Fact, Failure, FileEffect, Ignored, Note, Shell, StepBegin, TurnFailed, Usage
from agent_mux.native_json import load_object
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
from agent_mux_adapters.copilot import tools
from agent_mux_adapters.copilot.failures import code_of
from agent_mux_adapters.copilot.results import NOT_EXITED, REMARK, files_of

_INFO = "Info: "
_ERROR = "Error: "
_NO_MESSAGE = (_INFO, _ERROR)
_ERROR_LINE = b'"text":"Error: '
_ANSWER = b'"stopReason"'
_USAGE = b'"usage_update"'
_INFO_LINE = b'"text":"Info: '
_CHUNK = b'_chunk"'
_THOUGHT = b'"agent_thought_chunk"'
_CALL = b'"tool_call'
_INSIDE = Ignored("agent_message_chunk", "a sub-agent's words: its last ones are the result of the call")
_CAPTION = Ignored("agent_thought_chunk", "what is in progress, as a caption: a tool call told it")
_HELD = Ignored("agent_message_chunk", "a message or a failure: the next line tells")
_NAMES_BY_FIELD = {
    "file_text": tools.WRITING_TOOL,
    "old_str": tools.EDITING_TOOL,
    "agent_type": tools.DELEGATING_TOOL,
    "query": "sql",
    "delay": "read_bash",
}
_NAMES_BY_TITLE = {"Viewing ": tools.READING_TOOL, "Searching for ": "grep", "Finding files ": "glob"}


class CopilotTools(ToolReader):
    """Calls are announced with a description as their title; input and output are Copilot's own."""

    def name(self, call: AcpCall) -> str:
        """The tool, by what is in its input; of a tool that Copilot does not know, its name is the title."""
        if call.kind == "execute":
            return "bash"
        fields = mapping(call.raw_input)
        by_field = next((name for field, name in _NAMES_BY_FIELD.items() if field in fields), None)
        by_title = next((name for title, name in _NAMES_BY_TITLE.items() if call.first_title.startswith(title)), None)
        return by_field or by_title or super().name(call)

    def shell(self, call: AcpCall) -> Shell | None:
        """The exit of a background command is not the call's."""
        return tools.shell_of(self.name(call), call.raw_input)

    def subagent(self, call: AcpCall) -> tuple[str, str] | None:
        """The kind of the agent, and its prompt."""
        fields = mapping(call.raw_input)
        name, prompt = text(fields.get("agent_type")), text(fields.get("prompt"))
        return (name, prompt) if name and prompt else None

    def output(self, call: AcpCall) -> str:
        """What the model was shown."""
        return text(mapping(call.raw_output).get("content")) or super().output(call)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Both streams come as one, and a remark for the model after it."""
        shown = self.output(call)
        remark = REMARK.search(shown)
        return (shown[: remark.start()] or None if remark is not None else None), None

    def exit_code(self, call: AcpCall) -> int | None:
        """How the command exited; a command that goes on in the background did not."""
        if not call.is_shell or call.status != "completed":
            return None
        codes = [row.get("exitCode") for row in rows(mapping(call.raw_output).get("contents"))]
        code = next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), None)
        remark = REMARK.search(self.output(call))
        if code is None and remark is not None:
            return int(remark[1])
        return NOT_EXITED if code is None else code

    def error(self, call: AcpCall) -> str | None:
        """Why it failed. A command that runs on in the background did not."""
        return None if self.exit_code(call) == NOT_EXITED else super().error(call)

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """As its input and its result tell."""
        name = self.name(call)
        if name in (tools.READING_TOOL, tools.WRITING_TOOL, tools.EDITING_TOOL):
            return files_of(name, call.raw_input, {"result": call.raw_output}, cwd)
        return super().files(call, cwd) if call.kind == "edit" else ()


def _info(said: str) -> Fact:
    what = said.removeprefix(_INFO)
    if what.startswith("/"):
        return Ignored("agent_message_chunk", "the call that made the file tells it")
    return Note(what)


QUIRKS = AcpQuirks(
    agent="copilot",
    tools=CopilotTools(),
    asides={_INFO: _info},
    usage_is_cumulative=True,
    plan_repeats_tool_call=True,
)


class CopilotAcpCodec(AcpCodec):
    """ACP, where the order of the lines says more than the lines.

    A `usage_update` comes before what each model call says. A failure is a message that begins with "Error: ", and is
    the last word of the turn.
    """

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, replace(QUIRKS, closing_fact=self._ended, usage=self._usage))
        self._held: bytes | None = None
        self._failure: Failure | None = None
        self._counted: Usage | None = None
        self._is_called = True
        """The model was called since the last tool."""
        self._has_spoken = False
        """It said something since it was called."""
        self._is_called_again = False
        """And then it was called once more, without a tool between."""
        self._flows = False
        """The last line was a fragment of what the agent itself says: another one changes nothing of the above."""

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is not STDOUT:
            return super().receive(line, source)
        chunk = self.chunk(line) if self._flows else None
        if chunk is not None and (self._is_called or chunk.kind != THOUGHT):
            said = self._updates.fragment(chunk) if not chunk.content.text.startswith(_NO_MESSAGE) else None
            if said is not None:  # nearly all of them
                return said
        self._flows = False
        return self._read(line) if self._held is None and _ERROR_LINE not in line else self._weigh(line)

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # as in the contract
        """The process is gone."""
        return *self._release(), *super().finish(exit)

    # -- calls of the model

    def _read(self, line: bytes) -> Iterable[Step]:
        if _CHUNK in line and _INFO_LINE not in line:
            return self._chunk(line)
        if _USAGE in line:
            self._is_called, self._is_called_again, self._has_spoken = True, self._has_spoken, False
        elif _CALL in line or _ANSWER in line:
            self._is_called, self._is_called_again, self._has_spoken = _ANSWER in line, False, False
        return super().receive(line, STDOUT)

    def _chunk(self, line: bytes) -> Iterable[Step]:
        if any(call.is_subagent for call in self._tools.open):
            return (_INSIDE,)
        if not self._is_called and _THOUGHT in line:
            return (_CAPTION,)
        steps = super().receive(line, STDOUT)
        again, self._is_called_again, self._has_spoken = self._is_called_again, False, self._session.in_turn
        self._flows = self._after_fragment
        return (StepBegin(), *steps) if again else steps

    # -- a message that may be a failure waits for what comes after it

    def _weigh(self, line: bytes) -> Iterable[Step]:
        if self._held is not None and _USAGE in line:
            return self._read(line)
        if self._held is not None and _ANSWER in line:
            said = _said(self._held).removeprefix(_ERROR)
            self._failure, self._held = Failure(code_of(said), said), None
            return self._read(line)
        released = self._release()
        if not _said(line).startswith(_ERROR):
            return *released, *self._read(line)
        self._held, self._flows = line, False
        return *released, _HELD

    def _release(self) -> tuple[Step, ...]:
        held, self._held = self._held, None
        return () if held is None else tuple(self._read(held))

    # -- the end of a turn

    def _ended(self, how: PromptOutcome) -> Fact | None:
        failure, self._failure = self._failure, None
        return None if failure is None else TurnFailed(failure, how.cost)

    def _usage(self, result: Mapping[str, Any]) -> Usage | None:
        """Of the process so far; the same again after a turn that failed."""
        before, self._counted = self._counted, default_usage(result) or self._counted
        return None if self._counted == before else self._counted


def _said(line: bytes) -> str:
    """The text of an `agent_message_chunk`; empty when the line is something else."""
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
        "what sub-agents do: it looks as if the agent itself did it",
        "tool inputs as they stream",
        "stderr of commands apart from stdout",
    ),
)
