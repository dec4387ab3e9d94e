"""The tool contract: the `Tool` protocol, the context of a call, and its result.

A tool is any object with the attributes of `Tool`; `agent_loop.tools.function.tool` makes one of a typed function.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, runtime_checkable

import msgspec

from agent_loop.errors import ToolError
from agent_loop.messages import Shown, Text
from agent_loop.state import AgentState
from agent_loop.tools.effects import OutputStream, ToolEffect

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agent_loop.behavior import Behavior
    from agent_loop.workspace import Workspace

    Deps = TypeVar("Deps", default=Any)
else:  # Python 3.11 has no defaults of type variables
    from typing import TypeVar

    Deps = TypeVar("Deps")

Risk = Literal["low", "medium", "high"]
ToolKind = Literal["read", "edit", "execute", "fetch", "ask", "other"]
READING_KINDS: frozenset[ToolKind] = frozenset({"read", "ask"})
"""Kinds of tools that change nothing. A fetch may: it can be a POST."""


class McpOrigin(msgspec.Struct, frozen=True):
    """The MCP server of a tool, and the tool's name there."""

    server: str
    tool: str


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a tool call: content for the model, details and effects for everyone else."""

    content: tuple[Shown, ...]
    is_error: bool = False
    details: Any = None
    """Plain data that is stored and not shown to the model."""
    effects: tuple[ToolEffect, ...] = ()
    child_loop_id: str | None = None
    """The loop of the sub-agent that the call started."""
    child_session_id: str | None = None

    @property
    def text(self) -> str:
        """The text blocks of the content, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


class CallPreview(msgspec.Struct, frozen=True):
    """What a call would do, for the person who approves it."""

    paths: tuple[str, ...]
    """The files that it would change."""
    diff: str
    """The changes as a unified diff."""


class DoneSignal(msgspec.Struct, frozen=True):
    """The return value with which a tool ends the run."""

    message: str | None = None
    """The final answer; None: the text of the model's last message."""
    result: str = "Done."
    """The result of the call in the history."""


class TaskComplete(Exception):  # noqa: N818  # a public name; it ends the run and is not an error
    """An exception with which a tool ends the run from any call depth; it carries a `DoneSignal`."""

    def __init__(self, message: str | None = None, result: str = "Done.") -> None:
        super().__init__(message or result)
        self.signal = DoneSignal(message, result)


Output = ToolResult | DoneSignal | str
"""The types that `execute` may return; a string stands for a result with that text."""


class OutputCallback(Protocol):
    """A callback that receives partial output while the tool is running."""

    async def __call__(self, text: str, stream: OutputStream = "stdout") -> None:
        """Report a piece of output. `stream` is the stream of a command; other tools leave it out."""
        ...


async def _ignore(text: str, stream: OutputStream = "stdout") -> None:
    """Discard the report, because no one receives it."""


async def _cannot_ask(question: str, _options: tuple[str, ...]) -> str:
    raise ToolError(f"no user is available to answer {question!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[Deps]):
    """The context of one tool call. A call is cancelled by the event loop's cancellation, at any `await`.

    `ToolContext[Database]` declares the type of the dependencies that `Agent(deps=)` or a run provides.
    """

    call_id: str
    tool_name: str
    deps: Deps = None  # type: ignore[assignment]  # the agent provides them
    """The dependencies of the run: `run(deps=)`, else `Agent(deps=)`."""
    state: AgentState = field(default_factory=AgentState)
    """The state of the session: todos, changed files, files that were read."""
    workspace: "Workspace | None" = None
    """The files that the tool may use; None if the agent has no workspace."""
    behavior: "Behavior | None" = None
    """The behavior of the run; None for the defaults."""
    update: OutputCallback = _ignore
    """Report a part of the result while the tool is running, for example output of a command (hook `tool:update`).
    Output that a command printed on standard error must be reported as "stderr"; otherwise it is repeated at the end.
    """
    progress: Callable[[str], Awaitable[None]] = _ignore
    """Report progress to the user. It is not part of the result."""
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]] = _cannot_ask
    """Ask the user a question with options and wait for the answer. Raises `ToolError` if no one can answer."""
    seen: Callable[[str], tuple[Shown, ...] | None] | None = None
    """Return the content of an earlier call's result as the model has it in the latest request; None if compaction, a
    rerun or a branch removed it. The attribute is None outside of a run, where every earlier result counts as sent.
    """
    parent: object = None
    """The `LoopRun` of the call, for tools that start sub-agents."""
    is_cancelled: Callable[[], bool] = bool
    """Whether the call was cancelled, for code in threads, which the event loop cannot interrupt."""


@runtime_checkable
class Tool(Protocol):
    """A function that a model can call.

    Optional attributes: `label`, `kind`, `risk`, `read_only`, `sequential`, `mcp_origin`; `execute_raw` (`RawTool`);
    `prior_content(arguments, context)`, which returns the current content of the file that the call would write, for
    the hook `tool:before`; it may block; `preview(arguments, workspace)`, which returns a `CallPreview` or raises
    `ToolError`, also if it needs a workspace and `workspace` is None; it may block; `command_line(arguments)` of a tool
    of kind "execute", which returns the command line that a call runs, or None; without it, this is the argument
    `command`. `read_only=True` declares that calls change nothing, so that they may run concurrently with other such
    calls; without it, only the kinds "read" and "ask" count as read-only.
    """

    @property
    def name(self) -> str:
        """The unique name: up to 64 letters, digits, _ and -."""
        ...

    @property
    def description(self) -> str:
        """The purpose of the tool, for the model."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments, of type object."""
        ...

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Execute a call with validated and coerced arguments. Raises `ToolError` to report an error to the model."""
        ...


@runtime_checkable
class RawTool(Protocol):
    """A tool that also accepts arguments which are not valid JSON."""

    async def execute_raw(self, raw_arguments: str, context: ToolContext) -> Output:
        """Execute a call with the unparsed text of its arguments."""
        ...


def preview_of_call(
    tool: Tool | None, arguments: Mapping[str, Any], workspace: "Workspace | None"
) -> CallPreview | None:
    """Return the preview of a call; None if the tool has none, or the call would fail. May block."""
    preview: Callable[[Mapping[str, Any], Workspace | None], CallPreview] | None = getattr(tool, "preview", None)
    if preview is None:
        return None
    try:
        return preview(arguments, workspace)
    except ToolError:
        return None


def result_of(output: Output) -> ToolResult:
    """Return the output of a tool as a `ToolResult`. Raises `ToolError` for any other type."""
    match output:
        case str():
            return ToolResult((Text(output),))
        case DoneSignal():
            return ToolResult((Text(output.result),))
        case ToolResult():
            return output
    raise ToolError(f"the tool returned a {type(output).__name__}, which is not a tool result")


def kind_of(tool: Tool) -> ToolKind:
    """Return the kind of a tool; "other" if the tool does not declare one."""
    kind: ToolKind = getattr(tool, "kind", "other")
    return kind


def risk_of(tool: Tool) -> Risk:
    """Return the risk of a tool; "medium" if the tool does not declare one."""
    risk: Risk = getattr(tool, "risk", "medium")
    return risk


def label_of(tool: Tool) -> str:
    """Return the name of a tool for people: its label, or else its name."""
    return getattr(tool, "label", "") or tool.name


def mcp_origin_of(tool: Tool | None) -> McpOrigin | None:
    """Return the MCP server of a tool and its name there, None for other tools."""
    return getattr(tool, "mcp_origin", None)


def is_read_only(tool: Tool) -> bool:
    """Whether calls of the tool change nothing. A tool that declares neither `read_only` nor its kind may write."""
    declared: bool | None = getattr(tool, "read_only", None)
    return kind_of(tool) in READING_KINDS if declared is None else declared


def needs_no_approval(tool: Tool) -> bool:
    """Whether calls of the tool are allowed in every mode: they only read or ask, or have no effect outside."""
    kind = kind_of(tool)
    return kind in READING_KINDS or (kind == "other" and risk_of(tool) == "low")


def runs_alone(tool: Tool | None) -> bool:
    """Whether a call must not run concurrently with others: it may write, or its tool is sequential or unknown."""
    return tool is None or not is_read_only(tool) or bool(getattr(tool, "sequential", False))


def foreground_command_of(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line that runs during a call; None for other tools, and for a command in the background."""
    return None if arguments.get("background") is True else shell_command_of(tool, arguments)


def leaves_sandbox(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether a call runs a command without the sandbox in which the tool runs its other commands."""
    decide: Callable[[Mapping[str, Any]], bool] | None = getattr(tool, "leaves_sandbox", None)
    return decide is not None and decide(arguments)


def shell_command_of(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return the command line that a call would run, None if the tool does not run commands. May read a small file."""
    if kind_of(tool) != "execute":
        return None
    describe: Callable[[Mapping[str, Any]], str | None] | None = getattr(tool, "command_line", None)
    if describe is not None:
        return describe(arguments)
    command = arguments.get("command")
    return command if isinstance(command, str) else None
