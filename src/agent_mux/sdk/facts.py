"""What a codec can say about a run. The assembler turns facts into events and keeps the contract; a codec only tells.

A fact is small, frozen and free of clocks and ids of ours. Facts about the inside of a sub-agent are wrapped in
`InSubagent`. Everything else belongs to the main agent. A codec may tell facts in whatever order the agent printed
them, repeat itself, or stop in the middle: the assembler makes a lawful stream of it.

Several facts come as a stream or whole: use `TextDelta`... + `TextEnd` where the protocol streams and `Text` where it
does not, never both for the same text.
"""

from typing import Any, Literal

import msgspec

from agent_mux.errors import ErrorCode
from agent_mux.events.base import CostRecord

Risk = Literal["low", "medium", "high"]
Capability = Literal["text", "tool_calls", "thinking"]


class Fact(msgspec.Struct, frozen=True, gc=False):
    """Base of all facts."""


# -- session, turns, steps ---------------------------------------------------------------------------------------


class SessionKnown(Fact, frozen=True):
    """The agent named its session. Told again for the same session it says nothing new."""

    session_id: str
    resumed: bool = False
    forked_from: str | None = None
    prior_turns: int = 0
    """Turns in the session before this run, where known."""
    model: str | None = None
    """The model the agent says it uses."""


class CheckpointSaved(Fact, frozen=True):
    """The agent saved a checkpoint."""

    checkpoint_id: str


class TurnBegin(Fact, frozen=True):
    """The agent took up a prompt. Optional: anything that happens in a turn begins one."""


class TurnDone(Fact, frozen=True):
    """The agent's own closing message for a turn, and that it was good."""

    cost: CostRecord | None = None
    """Of this turn alone."""
    structured_output: Any = None
    """The parsed answer, where an output schema was asked for."""


class TurnStopped(Fact, frozen=True):
    """The agent's own closing message for a turn that an interruption ended."""

    cost: CostRecord | None = None


class Failure(msgspec.Struct, frozen=True, gc=False):
    """What a failing closing message says."""

    code: ErrorCode
    """Chooses the event: AUTH_ERROR, RATE_LIMITED, CONTEXT_EXCEEDED, or any other."""
    message: str
    guidance: str = ""
    """For AUTH_ERROR: what works for this agent."""
    retry_after_ms: int | None = None
    used_tokens: int = 0
    max_tokens: int = 0


class TurnFailed(Fact, frozen=True):
    """The agent's own closing message for a turn, and that it reports an error, whatever the agent calls it."""

    failure: Failure
    cost: CostRecord | None = None


class TurnLimitHit(Fact, frozen=True):
    """The agent's own closing message: it stopped at its turn limit."""

    max_turns: int = 0
    cost: CostRecord | None = None


class RunClosed(Fact, frozen=True):
    """The agent's own closing message of the whole run: it counts in place of that of the last turn, and opens none.

    While a turn runs, it closes that turn.
    """

    outcome: TurnFailed | TurnStopped | TurnLimitHit | None
    """None: the agent says that it crashed, and takes its closing messages back."""


class StepBegin(Fact, frozen=True):
    """A model call begins (and ends the step before it)."""

    step_type: str | None = None
    """What the agent calls it. None: the step begins with the first thing that happens in it, which says its type."""


class StepDone(Fact, frozen=True):
    """The model call and its tools are over."""


# -- text and thinking -------------------------------------------------------------------------------------------


class TextDelta(Fact, frozen=True):
    """A streamed fragment of the answer."""

    text: str


class TextEnd(Fact, frozen=True):
    """The streamed message is complete, or was abandoned: it is closed as it is."""


class Text(Fact, frozen=True):
    """A whole message that was not streamed."""

    text: str


class ThinkingDelta(Fact, frozen=True):
    """A streamed fragment of reasoning."""

    text: str
    effort: str | None = None
    """The effective effort level, told with the first fragment."""


class ThinkingEnd(Fact, frozen=True):
    """The streamed reasoning is complete, or was abandoned."""


class Thinking(Fact, frozen=True):
    """A whole reasoning block that was not streamed."""

    text: str
    effort: str | None = None


# -- tools -------------------------------------------------------------------------------------------------------


class Shell(msgspec.Struct, frozen=True, gc=False):
    """The tool call runs this command."""

    command: str
    cwd: str | None = None
    """None: the run's own working directory."""


class FileRead(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool read this file."""

    path: str


class FileWritten(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The tool wrote this whole file."""

    path: str
    byte_count: int
    created: bool
    """It was not there before."""


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
    """A streamed fragment of the input, JSON text."""

    call_id: str
    delta: str


class ToolReady(Fact, frozen=True):
    """The input is complete. Begins the call if `ToolBegin` was not told. Told twice, the second says nothing."""

    call_id: str
    name: str
    input: Any
    shell: Shell | None = None
    """Present when the call runs a foreground command whose exit belongs to the call."""
    permitted: bool = False
    """Nobody can deny it any more: a command starts now. Otherwise it starts when there is evidence that it did."""


class ToolOutput(Fact, frozen=True):
    """A streamed chunk of a running command's output."""

    call_id: str
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class ToolDone(Fact, frozen=True):
    """The tool ended. Exactly one of success (`error` is None) and failure."""

    call_id: str
    output: Any = None
    error: str | None = None
    duration_ms: int | None = None
    """None: measured from ready to now."""
    stdout: str | None = None
    """The command's whole output; what was not streamed of it yet is emitted before the exit."""
    stderr: str | None = None
    exit_code: int | None = None
    """Of the command; None: 0 on success, -1 on failure."""
    files: tuple[FileEffect, ...] = ()
    name: str | None = None
    """The tool, for a result whose call was never told."""


class CommandBegan(Fact, frozen=True):
    """A command runs inside one of the tool calls that are open, and nobody says which.

    For agents that tell of commands apart from their calls; the others say `ToolReady.shell`. It says nothing where
    each call that is ready has a command already.
    """

    command: str
    cwd: str


class CommandOutput(Fact, frozen=True):
    """A chunk of output of such a command."""

    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class CommandEnded(Fact, frozen=True):
    """Such a command is over."""

    exit_code: int
    duration_ms: int | None = None
    """None: measured."""


class FileTouched(Fact, frozen=True):
    """A tool of this turn touched a file. For agents that tell it apart from the call, as others do in `ToolDone`."""

    effect: FileEffect


class McpBegin(Fact, frozen=True):
    """A tool of an MCP server is called, with its complete input."""

    call_id: str
    server: str
    tool: str
    input: Any


class McpDone(Fact, frozen=True):
    """The MCP call ended; failed when `error` is given."""

    call_id: str
    output: Any = None
    error: str | None = None


class SubagentBegin(Fact, frozen=True):
    """The agent delegates a task."""

    subagent_id: str
    name: str
    prompt: str


class SubagentDone(Fact, frozen=True):
    """The sub-agent reported, or failed when `error` is given. May come turns later."""

    subagent_id: str
    summary: str = ""
    error: str | None = None
    cost: CostRecord | None = None


class InSubagent(Fact, frozen=True):
    """A fact about the inside of a sub-agent; shown only with `include_subagent_events`."""

    subagent_id: str
    fact: Fact


# -- plugins, skills, images -------------------------------------------------------------------------------------


class PluginLoaded(Fact, frozen=True):
    """A plugin is there."""

    plugin_id: str
    name: str
    version: str = ""


class PluginInvoked(Fact, frozen=True):
    """A plugin is used."""

    plugin_id: str
    name: str


class PluginFailed(Fact, frozen=True):
    """A plugin failed."""

    plugin_id: str
    name: str
    error: str


class SkillLoaded(Fact, frozen=True):
    """A skill is there."""

    name: str
    source: str = "built-in"


class SkillInvoked(Fact, frozen=True):
    """A skill is used."""

    name: str


class AgentdocRead(Fact, frozen=True):
    """An agent document was read."""

    path: str


class ImageProduced(Fact, frozen=True):
    """An image came out."""

    mime_type: str
    base64: str | None = None
    file_path: str | None = None


class ImageTaken(Fact, frozen=True):
    """An input image was accepted."""

    mime_type: str


# -- usage -------------------------------------------------------------------------------------------------------


class Usage(Fact, frozen=True):
    """Tokens of one model call (of one turn, where the agent reports no finer): an increment, never a running total."""

    input_tokens: int
    """Neither read from a cache nor written to one."""
    output_tokens: int
    """Thinking included, whether the agent counts it there or apart."""
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    cache_creation_tokens: int | None = None
    of_one_call: bool = True
    """False: of several calls together. How long each of them was nobody knows, and so what a long one costs."""


class RunCost(Fact, frozen=True):
    """The cost of this run so far: cumulative over this run, without earlier runs of the session."""

    cost: CostRecord


# -- interaction -------------------------------------------------------------------------------------------------


class ApprovalAsked(Fact, frozen=True):
    """The agent waits for permission. `request_id` is the codec's own key: it comes back in `Approve`/`Deny`."""

    request_id: str
    action: str
    detail: str
    risk: Risk
    tool_name: str | None = None
    call_id: str | None = None
    """The tool call that waits, if one does."""
    command: str | None = None
    """The command line that would run, where one would. With `paths`, what the rules of a policy look at."""
    paths: tuple[str, ...] = ()
    """The files it is about, as far as the agent says: absolute, or relative to the working directory."""


class InputAsked(Fact, frozen=True):
    """The agent waits for an answer."""

    request_id: str
    question: str
    context: str | None = None
    options: tuple[str, ...] = ()
    source: Literal["agent", "tool"] = "agent"


class RequestSettled(Fact, frozen=True):
    """An approval or a question is over: answered by us, by someone else, or withdrawn by the agent."""

    request_id: str
    granted: bool
    reason: str | None = None


# -- limits ------------------------------------------------------------------------------------------------------


class RateLimited(Fact, frozen=True):
    """The provider slows the agent down; it goes on by itself."""

    retry_after_ms: int | None = None


class ContextFilling(Fact, frozen=True):
    """The context window fills up."""

    used_tokens: int
    max_tokens: int


class ContextCompacted(Fact, frozen=True):
    """The agent compressed its context."""

    summary: str
    tokens_saved: int = 0


class Retrying(Fact, frozen=True):
    """A model call failed and will be repeated by the agent. Closes the partial message."""

    attempt: int
    max_attempts: int
    reason: str
    delay_ms: int = 0


class Trouble(Fact, frozen=True):
    """Something went wrong and the agent goes on by itself: a recoverable error."""

    code: ErrorCode
    message: str


# -- about the native stream itself --------------------------------------------------------------------------------


class Note(Fact, frozen=True):
    """A diagnostic for the `debug` event."""

    message: str
    level: Literal["verbose", "info", "warn"] = "info"


class LogLine(Fact, frozen=True):
    """A line that belongs to no protocol: noise on stdout, or standard error."""

    line: str
    source: Literal["stdout", "stderr"] = "stdout"


class Ignored(Fact, frozen=True):
    """The native line is known and deliberately not mapped. `kind` is its native type, `reason` says why."""

    kind: str
    reason: str


class Unknown(Fact, frozen=True):
    """The native line is not known: shown as `debug`, counted in the ledger, read by the drift report."""

    kind: str
    raw: str
