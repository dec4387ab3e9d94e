"""What a tool is, what it is given, and what it gives back. Source: phi-core, "AgentTool", "ToolContext", "ToolResult".

A tool is any object with these attributes; `agent_loop.tools.function.tool` makes one of a typed Python function.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from agent_loop.errors import ToolError
from agent_loop.messages import Shown, Text
from agent_loop.state import AgentState
from agent_loop.tools.effects import OutputStream, ToolEffect

if TYPE_CHECKING:
    from agent_loop.behavior import Behavior
    from agent_loop.workspace import Workspace

Risk = Literal["low", "medium", "high"]
ToolKind = Literal["read", "edit", "execute", "fetch", "ask", "other"]


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a tool call."""

    content: tuple[Shown, ...]
    is_error: bool = False
    details: Any = None
    """Plain data that the model does not see."""
    effects: tuple[ToolEffect, ...] = ()

    @property
    def text(self) -> str:
        """All its text."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


class DoneSignal(msgspec.Struct, frozen=True):
    """A tool returns this to end the run. Source: loop spec, section 4.4."""

    message: str | None = None
    """The final answer; None: the text of the model's last message."""
    result: str = "Done."
    """What the history says of the call."""


class TaskComplete(Exception):  # noqa: N818  # the loop spec's name; no error of anybody
    """A tool raises this to end the run, from as deep as it likes. As `DoneSignal`. Source: loop spec, section 4.4."""

    def __init__(self, message: str | None = None, result: str = "Done.") -> None:
        super().__init__(message or result)
        self.signal = DoneSignal(message, result)


Output = ToolResult | DoneSignal | str
"""What `execute` may return; text alone is a result of that text."""


class Update(Protocol):
    """Takes a part of a result, while the tool still works."""

    async def __call__(self, text: str, stream: OutputStream = "stdout") -> None:
        """`stream`: the one of the command that printed it; of other tools it says nothing."""
        ...


async def _nobody(text: str, stream: OutputStream = "stdout") -> None:
    """Nobody listens."""


async def _cannot_ask(question: str, _options: tuple[str, ...]) -> str:
    raise ToolError(f"nobody is there to answer {question!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool knows of its call. Cancelling comes as the event loop's own cancellation, at any await."""

    call_id: str
    tool_name: str
    state: AgentState = field(default_factory=AgentState)
    """Of the session: todos, files, what was read."""
    workspace: "Workspace | None" = None
    """The files it may touch; None: none."""
    behavior: "Behavior | None" = None
    """How this run behaves; None: as by default."""
    update: Update = _nobody
    """Tell a part of the result while the tool still works (output of a command, say): `tool:update`. What a command
    printed on standard error has to be told as that, or it is told again at its end."""
    progress: Callable[[str], Awaitable[None]] = _nobody
    """Tell a person how it goes; no part of the result."""
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]] = _cannot_ask
    """Ask the person (a question and options to choose from) and wait. Raises `ToolError` where nobody can answer."""
    is_cancelled: Callable[[], bool] = bool
    """For code in threads, which the event loop cannot cancel."""


@runtime_checkable
class Tool(Protocol):
    """Something a model can call.

    Optional besides: `label`, `kind`, `risk`, `sequential`; `execute_raw` (see `RawTool`); `prior_content(arguments,
    context)`, which says what a file holds that is about to be written, for `tool:before`, and may block.
    """

    @property
    def name(self) -> str:
        """Unique; letters, digits, _ and -, up to 64."""
        ...

    @property
    def description(self) -> str:
        """What it is for: the model reads it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments, an object."""
        ...

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Do it. The arguments are validated and coerced. Raises `ToolError` for what the model should be told."""
        ...


@runtime_checkable
class RawTool(Protocol):
    """A tool that takes arguments which are no JSON, too. Source: loop spec, section 4.2."""

    async def execute_raw(self, raw_arguments: str, context: ToolContext) -> Output:
        """Do it with the text that the model wrote."""
        ...


def result_of(output: Output) -> ToolResult:
    """An output as a result. Raises `ToolError` for what is none: tools are written by anybody."""
    match output:
        case str():
            return ToolResult((Text(output),))
        case DoneSignal():
            return ToolResult((Text(output.result),))
        case ToolResult():
            return output
    raise ToolError(f"the tool returned a {type(output).__name__}, which is no result")


def kind_of(tool: Tool) -> ToolKind:
    """What sort of thing it does; "other" where it does not say."""
    kind: ToolKind = getattr(tool, "kind", "other")
    return kind


def risk_of(tool: Tool) -> Risk:
    """How much harm it can do: "medium" where it does not say."""
    risk: Risk = getattr(tool, "risk", "medium")
    return risk


def label_of(tool: Tool) -> str:
    """Its name for people."""
    return getattr(tool, "label", "") or tool.name


def is_sequential(tool: Tool) -> bool:
    """It must not run beside other tools."""
    return bool(getattr(tool, "sequential", False))


def shell_command_of(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """The command line that a call would run, where the tool runs one."""
    if kind_of(tool) != "execute":
        return None
    command = arguments.get("command")
    return command if isinstance(command, str) else None
