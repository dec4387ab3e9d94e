"""What a codec can report about a run. The assembler turns facts into events that obey the contract.

A fact is small, frozen and free of clocks and of ids that agent-mux assigns. Facts from inside a sub-agent are wrapped
in `InSubagent`; all others belong to the main agent. A codec emits facts in the order in which the agent printed them;
it may repeat facts or stop at any point, because the assembler makes a conforming stream of any sequence.

Text, thinking and tool input exist as fragments and as whole values: emit `TextDelta`... and `TextEnd` where the
protocol streams, `Text` where it does not, never both for the same text.
"""

from typing import Any, Final, Literal

import msgspec

from agent_mux.errors import ErrorCode
from agent_mux.events.base import CostRecord, QuotaWindow, StopReason

Risk = Literal["low", "medium", "high"]
Capability = Literal["text", "tool_calls", "thinking"]


class Fact(msgspec.Struct, frozen=True, gc=False):
    """What a codec reports about a run."""


# -- session, turns, steps ---------------------------------------------------------------------------------------


class SessionKnown(Fact, frozen=True):
    """The agent named its session. Repeating it for the same session has no effect."""

    session_id: str
    resumed: bool = False
    forked_from: str | None = None
    prior_turns: int = 0
    """Turns in the session before this run, where known."""
    model: str | None = None
    """The model that the agent reports."""


class AgentVersion(Fact, frozen=True):
    """The agent reported the version of its program."""

    version: str


class CheckpointSaved(Fact, frozen=True):
    """The agent saved a checkpoint."""

    checkpoint_id: str


class TurnBegin(Fact, frozen=True):
    """The agent started to work on a prompt. Optional: any fact that belongs to a turn starts one."""


CUT_ANSWER: Final = "the answer was cut: the model reached its limit of output tokens"
"""The warning that the assembler emits for a turn with the stop reason `length`."""


class TurnDone(Fact, frozen=True):
    """The agent's closing message for a turn that succeeded."""

    cost: CostRecord | None = None
    """Cost of this turn alone."""
    structured_output: Any = None
    """The parsed answer, when the run has an output schema."""
    stop_reason: StopReason | None = None
    """Why the model's last answer ended; None where the agent does not report it. Filtered answers: `TurnFailed`."""
    reports_failures: bool = False
    """Whether the agent reports failed turns separately. A missing answer then counts only at the end of the run."""


class TurnStopped(Fact, frozen=True):
    """The agent's closing message for a turn that was interrupted."""

    cost: CostRecord | None = None


class Failure(msgspec.Struct, frozen=True, gc=False):
    """The failure that a closing message reports."""

    code: ErrorCode
    """Error code; AUTH_ERROR, RATE_LIMITED and CONTEXT_EXCEEDED have events of their own."""
    message: str
    guidance: str = ""
    """For AUTH_ERROR: how to log in to this agent."""
    retry_after_ms: int | None = None
    used_tokens: int = 0
    max_tokens: int = 0


class TurnFailed(Fact, frozen=True):
    """The agent's closing message for a turn that ended with an error."""

    failure: Failure
    cost: CostRecord | None = None
    stop_reason: StopReason | None = None


class TurnLimitHit(Fact, frozen=True):
    """The agent's closing message for a turn that reached the limit on model calls."""

    max_turns: int = 0
    cost: CostRecord | None = None


class RunClosed(Fact, frozen=True):
    """The agent's closing message for the whole run. It replaces that of the last turn and starts no turn.

    While a turn runs, it closes that turn.
    """

    outcome: TurnFailed | TurnStopped | TurnLimitHit | None
    """None: the agent reports a crash, which retracts its earlier closing messages."""


class StepBegin(Fact, frozen=True):
    """A model call begins, which ends the previous step."""

    step_type: str | None = None
    """The agent's name for the step. None: the step starts with the next fact, which determines its type."""


class StepDone(Fact, frozen=True):
    """The model call and its tool calls are complete."""


# -- text and thinking -------------------------------------------------------------------------------------------


class TextDelta(Fact, frozen=True):
    """A streamed fragment of the answer."""

    text: str


class TextEnd(Fact, frozen=True):
    """The streamed message is complete, or was abandoned; it is closed with the text received so far."""


class WholeText(Fact, frozen=True):
    """A whole message that was not streamed."""

    text: str


class ThinkingDelta(Fact, frozen=True):
    """A streamed fragment of reasoning."""

    text: str
    effort: str | None = None
    """Effective effort level, reported with the first fragment."""


class ThinkingEnd(Fact, frozen=True):
    """The streamed reasoning is complete, or was abandoned."""


class WholeThinking(Fact, frozen=True):
    """A whole reasoning block that was not streamed."""

    text: str
    effort: str | None = None


# -- tools -------------------------------------------------------------------------------------------------------


class ShellInvocation(msgspec.Struct, frozen=True, gc=False):
    """The tool call runs this command."""

    command: str
    cwd: str | None = None
    """None: the working directory of the run."""


class FileRead(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool read this file."""

    path: str


class FileWritten(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool wrote this whole file."""

    path: str
    byte_count: int
    created: bool
    """Whether the file did not exist before."""


class FilePatched(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool changed part of this file."""

    path: str
    diff: str
    """Unified diff."""


class FileDeleted(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool deleted this file."""

    path: str


FileEffect = FileRead | FileWritten | FilePatched | FileDeleted


class ToolBegin(Fact, frozen=True):
    """The agent begins to stream the input of a native tool call."""

    call_id: str
    name: str


class ToolInput(Fact, frozen=True):
    """A streamed fragment of the input, as JSON text."""

    call_id: str
    delta: str


class ToolReady(Fact, frozen=True):
    """The input is complete. Starts the call if no `ToolBegin` preceded it; repeating it has no effect."""

    call_id: str
    name: str
    input: Any
    shell: ShellInvocation | None = None
    """Present when the call runs a foreground command whose exit belongs to the call."""
    permitted: bool = False
    """Whether the call can no longer be denied: then its command starts now, otherwise with its first evidence."""


class ToolOutput(Fact, frozen=True):
    """A streamed chunk of a running command's output."""

    call_id: str
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class ToolDone(Fact, frozen=True):
    """The tool call ended: successfully when `error` is None, otherwise with a failure."""

    call_id: str
    output: Any = None
    error: str | None = None
    duration_ms: int | None = None
    """Milliseconds. None: measured from `ToolReady` to now."""
    stdout: str | None = None
    """Whole output of the command; the part that was not streamed yet is emitted before the exit."""
    stderr: str | None = None
    exit_code: int | None = None
    """Exit code of the command; None: 0 on success, -1 on failure."""
    files: tuple[FileEffect, ...] = ()
    name: str | None = None
    """Name of the tool, for a result without a preceding call."""


class CommandBegan(Fact, frozen=True):
    """A command runs inside one of the open tool calls; the agent does not report which.

    For agents that report commands separately from tool calls; others set `ToolReady.shell`. Ignored when every call
    that is ready has a command already.
    """

    command: str
    cwd: str


class CommandOutput(Fact, frozen=True):
    """A chunk of the output of a command that `CommandBegan` started."""

    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class CommandEnded(Fact, frozen=True):
    """A command that `CommandBegan` started has ended."""

    exit_code: int
    duration_ms: int | None = None
    """Milliseconds. None: measured by the assembler."""


class FileTouched(Fact, frozen=True):
    """A tool of this turn touched a file. For agents that report it separately; others set `ToolDone.files`."""

    effect: FileEffect


class McpBegin(Fact, frozen=True):
    """A call of an MCP tool begins, with its complete input."""

    call_id: str
    server: str
    tool: str
    input: Any


class McpDone(Fact, frozen=True):
    """The call of an MCP tool ended; it failed when `error` is set."""

    call_id: str
    output: Any = None
    error: str | None = None


class SubagentBegin(Fact, frozen=True):
    """The agent delegates a task."""

    subagent_id: str
    name: str
    prompt: str


class SubagentDone(Fact, frozen=True):
    """The sub-agent returned its report, or failed when `error` is set. May arrive turns later."""

    subagent_id: str
    summary: str = ""
    error: str | None = None
    cost: CostRecord | None = None


class InSubagent(Fact, frozen=True):
    """A fact from inside a sub-agent; emitted as events only with `include_subagent_events`."""

    subagent_id: str
    fact: Fact


# -- plugins, skills, images -------------------------------------------------------------------------------------


class PluginLoaded(Fact, frozen=True):
    """The agent loaded a plugin."""

    plugin_id: str
    name: str
    version: str = ""


class PluginInvoked(Fact, frozen=True):
    """The agent invoked a plugin."""

    plugin_id: str
    name: str


class PluginFailed(Fact, frozen=True):
    """A plugin reported an error."""

    plugin_id: str
    name: str
    error: str


class SkillLoaded(Fact, frozen=True):
    """The agent loaded a skill."""

    name: str
    source: str = "built-in"


class SkillInvoked(Fact, frozen=True):
    """The agent invoked a skill."""

    name: str


class AgentdocRead(Fact, frozen=True):
    """The agent read an instruction file such as AGENTS.md."""

    path: str


class ImageProduced(Fact, frozen=True):
    """The agent produced an image."""

    mime_type: str
    base64: str | None = None
    file_path: str | None = None


class ImageAccepted(Fact, frozen=True):
    """The agent accepted an input image."""

    mime_type: str


# -- usage -------------------------------------------------------------------------------------------------------


class Usage(Fact, frozen=True):
    """Tokens of one model call, or of one turn if the agent reports only turns: an increment, never a running total."""

    input_tokens: int
    """Tokens neither read from a cache nor written to one."""
    output_tokens: int
    """Tokens including thinking, even where the agent counts those separately."""
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_creation_tokens: int | None = None
    of_one_call: bool = True
    """False: the sum of several calls, so that prices for long calls cannot be applied."""


class RunCost(Fact, frozen=True):
    """Cumulative cost of this run, without earlier runs of the session."""

    cost: CostRecord


class QuotaReported(Fact, frozen=True):
    """The provider reported its quota. Windows that it does not name keep their last values."""

    windows: tuple[QuotaWindow, ...]


# -- interaction -------------------------------------------------------------------------------------------------


class FileEdit(msgspec.Struct, frozen=True, gc=False):
    """A change of a file for which the agent asks permission, as its request states it."""

    path: str
    new: str
    """The text that replaces `old`, or the whole new content."""
    old: str | None = None
    """The text that is replaced; None: the whole file, which may not exist."""
    replaces_all: bool = False
    """Whether every occurrence of `old` is replaced, not only the first one."""
    cell: str | None = None
    """Id of the cell of a notebook of which `old` and `new` are the source."""


class ApprovalRequested(Fact, frozen=True):
    """The agent waits for permission. `request_id` is the codec's key, repeated in the response."""

    request_id: str
    action: str
    detail: str
    risk: Risk
    tool_name: str | None = None
    call_id: str | None = None
    """The tool call that waits, if any."""
    command: str | None = None
    """The command line that would run, if any. Policy rules match `command` and `paths`."""
    paths: tuple[str, ...] = ()
    """The files concerned, as far as reported: absolute, or relative to the working directory."""
    tool_input: Any = None
    """The whole input of the tool, if reported."""
    diff: str | None = None
    """The unified diff that the agent reports for a change of files."""
    edits: tuple[FileEdit, ...] = ()
    """The changes of files from which a diff is computed, if the agent reports none."""


class InputRequested(Fact, frozen=True):
    """The agent waits for the answer to a question."""

    request_id: str
    question: str
    context: str | None = None
    options: tuple[str, ...] = ()
    source: Literal["agent", "tool"] = "agent"


class RequestResolved(Fact, frozen=True):
    """An approval or a question is closed: answered here or elsewhere, or withdrawn by the agent."""

    request_id: str
    granted: bool
    reason: str | None = None


# -- limits ------------------------------------------------------------------------------------------------------


class RateLimited(Fact, frozen=True):
    """The provider throttles the agent, which continues on its own."""

    retry_after_ms: int | None = None


class ContextFilling(Fact, frozen=True):
    """The context window is nearly full."""

    used_tokens: int
    max_tokens: int


class ContextCompacted(Fact, frozen=True):
    """The agent compressed its context."""

    summary: str
    tokens_saved: int = 0


class Retrying(Fact, frozen=True):
    """A model call failed and the agent repeats it. Closes the partial message."""

    attempt: int
    max_attempts: int
    reason: str
    delay_ms: int = 0


class RecoverableError(Fact, frozen=True):
    """A recoverable error: the agent continues on its own."""

    code: ErrorCode
    message: str


# -- about the native stream itself --------------------------------------------------------------------------------


class Note(Fact, frozen=True):
    """A diagnostic message, emitted as a `debug` event."""

    message: str
    level: Literal["verbose", "info", "warn"] = "info"


class LogLine(Fact, frozen=True):
    """A line outside of the protocol: noise on stdout, or standard error."""

    line: str
    source: Literal["stdout", "stderr"] = "stdout"


class Ignored(Fact, frozen=True):
    """The native line is known and deliberately not mapped; `kind` is its native type."""

    kind: str
    reason: str


class Unknown(Fact, frozen=True):
    """The native line is not known. It is emitted as `debug`, counted in the ledger and listed by the drift report."""

    kind: str
    raw: str
