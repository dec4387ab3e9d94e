"""Presets: reusable slices of the configuration of an agent, and their composition."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from agent_loop.agent import Agent
from agent_loop.agent_options import MAIN
from agent_loop.behavior import Behavior
from agent_loop.checked import check_fields
from agent_loop.errors import ConfigurationError
from agent_loop.hooks.registry import Handler, Hooks, Middleware
from agent_loop.loop.inputs import InputFilter
from agent_loop.presets.parts import PresetParts
from agent_loop.presets.plan_mode import PlanMode
from agent_loop.presets.tool_selection import ToolSelection
from agent_loop.providers import Provider
from agent_loop.tools.toolset import ToolLike, as_tool

if TYPE_CHECKING:
    from agent_loop.context import CompactionStrategy
    from agent_loop.handoffs import HandoffLike
    from agent_loop.loop.run import AskUser, Surroundings
    from agent_loop.mcp.client import Connector
    from agent_loop.mcp.servers import McpServer
    from agent_loop.publishing.bus import EventBus
    from agent_loop.sessions.session import Session
    from agent_loop.sessions.store import SessionStore
    from agent_loop.workspace import Workspace

Mode = Literal["plan", "accept-edits", "ask", "yolo"]
"""Which calls run without asking: those that read ("ask"), edits as well, or all ("yolo"). "plan" only reads, until the
user accepts a plan."""
PromptMode = Literal["append", "replace"]
HandlerMap = Mapping[str, Handler | Sequence[Handler]]
"""Hook name -> its handler, or several."""
Path = str | PathLike[str]
GATED_MODES = frozenset({"ask", "accept-edits"})
"""Modes in which someone decides about calls. The library has no approvals of its own: a `tool:gate` handler asks."""
Named = TypeVar("Named")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A part of an agent's configuration. None and empty collections are unset.

    It holds everything that several agents can share. The rest is an argument of `create`: model object, workspace,
    session, store, user. Raises `ConfigurationError` for unknown hook names.
    """

    name: str | None = None
    """The name of the agent, by which a registry, `delegate` and handoffs refer to it."""
    description: str | None = None
    """When to use the agent, for people and for models that delegate or hand off to it."""
    model: str | None = None
    """The model as provider:model."""
    fallbacks: Sequence[str] | None = None
    """Models that replace the model once its calls fail, in order."""
    system_prompt: str | None = None
    prompt_mode: PromptMode | None = None
    """Whether a program with a system prompt of its own (`amux-agent`), or the parent of a sub-agent, keeps it before
    this one ("append", the default). After a handoff, it replaces the prompt of the agent before in any case.
    """
    mode: Mode | None = None
    tool_names: Collection[str] | None = None
    """The only tools that the model gets, by name; None: all tools of the agent."""
    excluded_tools: Collection[str] = ()
    """Tools that the model does not get."""
    approved_tools: Collection[str] = ()
    """Tools that need no approval in a program that asks for approvals (`amux-agent`)."""
    tools: Sequence[ToolLike] = ()
    """Tools that the preset adds."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    behavior: Behavior | None = None
    hooks: HandlerMap = field(default_factory=dict)
    middleware: Sequence[Middleware] = ()
    """Middleware, whose objects all agents of the preset share."""
    without: Collection[str] = ()
    """What the agent does not get, whoever adds it: names of middleware, such as "memory" and "todos", or "skills"."""
    mcp_servers: "Sequence[McpServer]" = ()
    skills: Sequence[Path] | None = None
    """Directories of skills."""
    memory: Sequence[Path] | None = None
    """Files with instructions."""
    input_filters: Sequence[InputFilter] = ()
    handoffs: Sequence[str] = ()
    """The names of the agents to which it can hand off the conversation; a registry, or `create(handoffs=)`, has them.
    """

    def __post_init__(self) -> None:
        check_fields(self)
        Hooks(self.hooks)

    def create(self, provider: Provider | str | None = None, **given: "Unpack[Ambient]") -> Agent:
        """Return an agent with this configuration. `provider` replaces the model of the preset.

        Raises `ConfigurationError` without a model, for invalid options, and for a mode that needs approvals if no
        handler of `tool:gate` asks for them.
        """
        model = self.model if provider is None else provider
        if model is None:
            raise ConfigurationError(f"{self.label} has no model; set `model`, or pass a provider")
        if self.mode in GATED_MODES and "tool:gate" not in self.hooks:
            raise ConfigurationError(
                f"{self.label} has the mode {self.mode!r}, in which a user approves calls; add a handler of the hook "
                "`tool:gate` that asks, or run it with amux-agent"
            )
        if self.handoffs and "handoffs" not in given:
            raise ConfigurationError(
                f"{self.label} hands off to {', '.join(self.handoffs)}, which is only a name here; create it with an "
                "AgentRegistry that has those agents, or pass `handoffs`"
            )
        return Agent(
            model,
            fallbacks=self.fallbacks or (),
            tools=self.tools,
            system_prompt=self.system_prompt or "",
            behavior=self.behavior,
            hooks=self.hooks,
            middleware=self.all_middleware(),
            input_filters=self.input_filters,
            aliases=self.aliases,
            mcp_servers=self.mcp_servers,
            skills=self.own_skills() or None,
            name=self.name or MAIN,
            **given,
        )

    def parts(self) -> list[Middleware]:
        """Return the tools, hooks and restrictions as middleware, for a sub-agent or the target of a handoff.

        In plan mode, such an agent only reads.
        """
        return [PresetParts(self.tools, self.hooks), *self.all_middleware(presents_plans=False)]

    def all_middleware(self, *, presents_plans: bool = True) -> list[Middleware]:
        """Return the middleware of an agent: that of the preset, and that which its other fields describe.

        `presents_plans`: whether an agent in plan mode can present a plan; a sub-agent only reads then.
        """
        found = [*self.middleware]
        if self.mode == "plan":
            found.append(PlanMode() if presents_plans else PlanMode(review=None))
        if self.memory:
            from agent_loop.middleware.memory import MemoryMiddleware  # noqa: PLC0415  # few presets have files

            found.append(MemoryMiddleware(self.memory))
        return [*self.allowed_middleware(found), *self.selection()]

    def own_skills(self) -> Sequence[Path] | None:
        """Return the directories of skills of an agent, empty with "skills" in `without`; None: the preset has none."""
        return () if "skills" in self.without else self.skills

    def allowed_middleware(self, middleware: Sequence[Middleware]) -> list[Middleware]:
        """Return the middleware that `without` does not name."""
        return [each for each in middleware if each.name not in self.without]

    def selection(self) -> list[ToolSelection]:
        """Return the middleware that selects tools. It must be the last, after all that add tools."""
        selects = self.tool_names is not None or self.excluded_tools
        return [ToolSelection(self.tool_names, self.excluded_tools)] if selects else []

    @property
    def label(self) -> str:
        """The subject of messages about the preset."""
        return f"the agent {self.name!r}" if self.name else "the preset"


class Ambient(TypedDict, total=False):
    """Arguments of `Agent` that belong to one agent and are not part of a preset."""

    workspace: "Workspace | Path | None"
    store: "SessionStore | None"
    session: "Session | None"
    handoffs: "Sequence[HandoffLike]"
    ask: "AskUser | None"
    deps: Any
    agent_id: str | None
    config_id: str | None
    compaction: "CompactionStrategy | None"
    mcp_connector: "Connector | None"
    event_bus: "EventBus | None"
    surroundings: "Surroundings | None"


def compose_presets(*presets: Preset) -> Preset:
    """Return one preset of several. Later presets take precedence, field by field.

    - `name`, `description`, `model`, `fallbacks`, `system_prompt`, `prompt_mode`, `mode`, `tool_names`, `skills`,
      `memory`: the last one that is set.
    - `behavior`: each option is the last one that is set.
    - `tools`, `middleware`, `mcp_servers`: all; one with the name of an earlier one takes its place.
    - `aliases`: all; a later alias of a tool replaces an earlier one.
    - `hooks`: all handlers of a hook, those of earlier presets first.
    - `input_filters`: all, in order. `excluded_tools`, `approved_tools`, `without`, `handoffs`: the union.
    """
    return reduce(_compose, presets, Preset())


def _compose(earlier: Preset, later: Preset) -> Preset:
    return Preset(**{
        each.name: _RULES.get(each.name, _last)(getattr(earlier, each.name), getattr(later, each.name))
        for each in fields(Preset)
    })  # fmt: skip


def _last(earlier: Any, later: Any) -> Any:
    return earlier if later is None else later


def _merge_behavior(earlier: Behavior | None, later: Behavior | None) -> Behavior | None:
    return later.over(earlier) if earlier is not None and later is not None else _last(earlier, later)


def _merge_hooks(earlier: HandlerMap, later: HandlerMap) -> HandlerMap:
    first, second = Hooks(earlier).handlers, Hooks(later).handlers
    return {name: (*first.get(name, ()), *second.get(name, ())) for name in dict.fromkeys((*first, *second))}


def _merge_named(earlier: Sequence[Named], later: Sequence[Named], name_of: Callable[[Any], str]) -> tuple[Named, ...]:
    return tuple({name_of(each): each for each in (*earlier, *later)}.values())


def _merge_tools(earlier: Sequence[ToolLike], later: Sequence[ToolLike]) -> tuple[ToolLike, ...]:
    return _merge_named(tuple(map(as_tool, earlier)), tuple(map(as_tool, later)), lambda tool: str(tool.name))


def _merge_by_name(earlier: Sequence[Any], later: Sequence[Any]) -> tuple[Any, ...]:
    return _merge_named(earlier, later, lambda each: str(each.name))


def _concatenate(earlier: Sequence[Any], later: Sequence[Any]) -> tuple[Any, ...]:
    return (*earlier, *later)


def _unite(earlier: Collection[str], later: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*earlier, *later)))


_RULES: Mapping[str, Callable[[Any, Any], Any]] = {
    "behavior": _merge_behavior,
    "tools": _merge_tools,
    "middleware": _merge_by_name,
    "mcp_servers": _merge_by_name,
    "aliases": lambda earlier, later: {**earlier, **later},
    "hooks": _merge_hooks,
    "input_filters": _concatenate,
    **dict.fromkeys(("excluded_tools", "approved_tools", "without", "handoffs"), _unite),
}
"""How each field is merged; a field without a rule is the last one that is set."""
