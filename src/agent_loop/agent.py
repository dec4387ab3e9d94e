"""The agent: a provider, tools, hooks and a conversation, and the methods that run the loop over them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, Unpack, get_args

import anyio

from agent_loop.behavior import DEFAULTS, Behavior, resolve_behavior
from agent_loop.context.compaction import CompactionStrategy
from agent_loop.context.manager import ContextManager, request_window
from agent_loop.conversation import AgentConversation
from agent_loop.errors import ConfigurationError, RunInProgressError, ToolError
from agent_loop.events import BudgetExceeded, ContinuationKind, LoopEvent, TurnTrigger
from agent_loop.gates import DedupMemory, framework_gates
from agent_loop.hooks.contexts import BeforeAgent, ToolBudgetExceeded
from agent_loop.hooks.registry import Handler, Hooks, Middleware
from agent_loop.loop.chain import ActingAgent, LoopChain
from agent_loop.loop.engine import CLEANUP, Engine
from agent_loop.loop.inputs import InputFilter, MessageQueue, Prompt, to_prompt_messages, to_user_message
from agent_loop.loop.outputs import request_summary
from agent_loop.loop.run import AskUser, LoopRun, Surroundings, is_in_event_loop
from agent_loop.messages import Message, UserMessage, user
from agent_loop.providers import Provider
from agent_loop.providers.provider import ClosableProvider
from agent_loop.providers.registry import to_provider
from agent_loop.results import EventCallback, RunResult, RunStream, open_stream
from agent_loop.sessions.ids import config_segment
from agent_loop.sessions.session import Formation, LoopConfig, Session, SpawnRef
from agent_loop.sessions.store import SessionStore
from agent_loop.skill_files import Skill
from agent_loop.tools.tool import Tool, mcp_origin_of
from agent_loop.tools.toolset import ToolLike, Toolset, as_tool
from agent_loop.workspace import Workspace

if TYPE_CHECKING:
    from agent_loop.handoffs import HandoffLike, Roster
    from agent_loop.mcp.client import Connector
    from agent_loop.mcp.host import McpHost
    from agent_loop.mcp.servers import McpServer
    from agent_loop.publishing.bus import EventBus
    from agent_loop.skills.host import SkillHost
    from agent_loop.skills.settings import SkillDirectories, SkillSettings

HooksArgument = Hooks | Mapping[str, Handler | Sequence[Handler]]
MAIN = "main"
"""Name of an agent without a name."""
CONTEXT_KEY = "context"
"""Key in `AgentState.extra` of the context manager's saved state."""


class RunArguments(TypedDict, total=False):
    """Keyword arguments of `Agent.run`, which apply to one run and override those of the agent."""

    behavior: Behavior | None
    """Options that override the agent's."""
    hooks: HooksArgument | None
    """Handlers for this run."""
    system_prompt: str | None
    """Instructions instead of the agent's."""
    metadata: Any
    """Plain data for the first event and the record of the run."""
    deps: Any
    """Dependencies of the tools, instead of the agent's: `ToolContext.deps`."""
    spawned_by: SpawnRef | None
    """The tool call of another agent that starts this run as a sub-agent."""


class Abortable(Protocol):
    """What `Agent.abort` ends: one run, or several in parallel."""

    def abort(self, reason: str) -> None:
        """End the work in an orderly way. Called from the event loop's thread only."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """Settings of an agent that replace those of another; None keeps its setting."""

    provider: Provider | str | None = None
    fallbacks: Sequence[Provider | str] | None = None
    system_prompt: str | None = None
    behavior: Behavior | None = None
    """Options that override the agent's."""
    tools: Sequence[ToolLike] | None = None
    workspace: Workspace | str | PathLike[str] | None = None
    deps: Any = None

    def given(self) -> dict[str, Any]:
        """Return the changes that are set, as the values of an agent. Raises `ConfigurationError`."""
        found = {
            "provider": None if self.provider is None else to_provider(self.provider),
            "fallbacks": None if self.fallbacks is None else tuple(map(to_provider, self.fallbacks)),
            "system_prompt": self.system_prompt,
            "behavior": self.behavior,
            "tools": None if self.tools is None else tuple(map(as_tool, self.tools)),
            "workspace": _as_workspace(self.workspace),
            "deps": self.deps,
        }
        return {name: value for name, value in found.items() if value is not None}


def _as_workspace(workspace: Workspace | str | PathLike[str] | None) -> Workspace | None:
    if not isinstance(workspace, Workspace | str | PathLike | None):
        raise ConfigurationError(f"workspace must be a directory or a Workspace(...), not {workspace!r}")
    return Workspace(Path(workspace)) if isinstance(workspace, str | PathLike) else workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunOptions:
    """Arguments of one run besides its prompt."""

    kind: ContinuationKind | None = None
    at: int | None = None
    prompted: bool = False
    behavior: Behavior | None = None
    hooks: HooksArgument | None = None
    system_prompt: str | None = None
    metadata: Any = None
    deps: Any = None
    spawned_by: SpawnRef | None = None


@dataclass(frozen=True, slots=True)
class _BegunRun:
    """The first loop of a run, and the arguments of the run for the loops that follow."""

    run: LoopRun
    options: _RunOptions


def first_trigger(kind: ContinuationKind | None, spawned_by: SpawnRef | None = None) -> TurnTrigger:
    """Return the trigger of the first turn of a run with this continuation kind, which `spawned_by` may start."""
    if kind is None:
        return "user" if spawned_by is None else "sub_agent"
    return "branch" if kind == "branch" else "continuation"


class Agent:
    """An agent with one conversation. It executes one run at a time and accepts messages during a run."""

    def __init__(  # noqa: PLR0913  # keyword arguments, each documented below
        self,
        provider: Provider | str,
        *,
        tools: Sequence[ToolLike] = (),
        system_prompt: str = "",
        behavior: Behavior | None = None,
        hooks: HooksArgument | None = None,
        middleware: Sequence[Middleware] = (),
        workspace: Workspace | str | PathLike[str] | None = None,
        store: SessionStore | None = None,
        session: Session | None = None,
        input_filters: Sequence[InputFilter] = (),
        ask: AskUser | None = None,
        deps: Any = None,
        fallbacks: Sequence[Provider | str] = (),
        agent_id: str | None = None,
        config_id: str | None = None,
        aliases: Mapping[str, str] | None = None,
        compaction: CompactionStrategy | None = None,
        mcp_servers: "Sequence[McpServer]" = (),
        mcp_connector: "Connector | None" = None,
        skills: "SkillSettings | SkillDirectories | None" = None,
        handoffs: "Sequence[HandoffLike]" = (),
        name: str = MAIN,
        event_bus: "EventBus | None" = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        """Create an agent from a provider, tools and options.

        Args:
            provider: The model, or its name: "anthropic:claude-x", as for `provider_named`.
            tools: The agent's tools, besides those that middleware registers. Typed functions become tools.
            system_prompt: Instructions; sent once per model call, never part of the history.
            behavior: Options that override the defaults.
            hooks: Handlers for the lifetime of the agent.
            middleware: Groups of hooks and wrappers; the first is the outermost.
            workspace: The files that its tools may access, or their directory.
            store: Store of the session; None keeps the session in memory only.
            session: Conversation to continue; None starts a new one.
            input_filters: Filters that check each prompt before the run.
            ask: Callback by which a tool asks the user a question.
            deps: Dependencies of the tools, for example a database: `ToolContext.deps`.
            fallbacks: Models that replace the model for the rest of a run, in order, once its calls fail after all
                retries.
            agent_id: Stable name of this agent; None generates one.
            config_id: Name of this configuration in loop ids; None derives it from provider, model and thinking level.
            aliases: Tool name -> the name that the model sees.
            compaction: Strategy that replaces the built-in compaction.
            mcp_servers: Servers whose tools the agent uses. They are connected for one run; within `async with agent`
                they stay connected.
            mcp_connector: Connects to the servers instead of the MCP SDK, for tests.
            skills: Skills that the model can activate: their directories, or settings with their sources and limits.
            handoffs: Agents to which the model can hand off the conversation: presets, or `Handoff`s of presets.
            name: The name of the agent, by which others can hand the conversation back: `RunResult.agent`.
            event_bus: Publishes the events of all runs, with those of sub-agents, to its subscribers.
            surroundings: Clock, randomness and ids, for tests.

        Raises `ConfigurationError` for invalid options.
        """
        self.provider = to_provider(provider)
        self.fallbacks = tuple(map(to_provider, fallbacks))
        self.tools: tuple[Tool, ...] = tuple(map(as_tool, tools))
        self.deps = deps
        self.system_prompt = system_prompt
        self.behavior = resolve_behavior(behavior, DEFAULTS)
        self.hooks = hooks if isinstance(hooks, Hooks) else Hooks(hooks)
        self.first_hooks = Hooks()
        """Handlers that fire before those of `hooks`; twins have their own."""
        self._middleware_hooks = Hooks(middleware=middleware)  # separate: `hooks` may be shared with other agents
        self.workspace = _as_workspace(workspace)
        self.input_filters = tuple(input_filters)
        self.surroundings = surroundings or Surroundings()
        self._ask = ask
        self._aliases = dict(aliases or {})
        self._compaction = compaction
        self._config_id = config_id
        self._build_toolset(self.tools)  # fails now, not during a run, if names are invalid
        self.steering = MessageQueue()
        self.follow_ups = MessageQueue()
        self.conversation = AgentConversation(
            agent_id or self.surroundings.new_id(),
            store,
            session,
            self.surroundings,
            None if self.workspace is None else str(self.workspace.root),
        )
        self._event_bus = self.conversation.event_bus = event_bus
        if event_bus is not None:
            event_bus.attach(self)
        self._dedup_memory = DedupMemory()
        self._engine: Abortable | None = None
        self._mcp = self._mcp_host(mcp_servers, mcp_connector)
        self._skills = None if skills is None else self._skill_host(skills)
        self.name = name
        self._roster = self._roster_of(handoffs)
        self._context = AsyncExitStack()

    # -- MCP servers ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start to connect the MCP servers, which stay connected until the end of the context."""
        if self._mcp is not None:
            await self._context.enter_async_context(self._mcp.open())
            self._mcp.warm_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the MCP servers."""
        return await self._context.__aexit__(kind, error, trace)

    async def warmup(self) -> None:
        """Search the skills, and wait until each MCP server is connected or has failed.

        With MCP servers, raises `ConfigurationError` outside `async with`.
        """
        if self._mcp is None:
            await self.load_skills()
            return
        if not self._mcp.is_open:
            raise ConfigurationError("warmup() connects servers for an `async with agent:` block; use it inside one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.load_skills)
            tasks.start_soon(self._mcp.connect)

    # -- skills -----------------------------------------------------------------------------------------------------

    async def load_skills(self) -> tuple[Skill, ...]:
        """Search the skills and return them, sorted by name. They are searched once, at the latest by the first run."""
        if self._skills is None:
            return ()
        await self._skills.resolve()
        return self._skills.skills

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills, in the order of their activation."""
        return () if self._skills is None else tuple(self._skills.active)

    async def activate_skill(self, name: str) -> str:
        """Make a skill active for the current or the next run, whose requests contain its instructions; return them.

        Commands in the instructions are not run. Raises `ConfigurationError` if there is no such skill, too many are
        active, or its file cannot be read.
        """
        if self._skills is None:
            raise ConfigurationError("this agent has no skills; pass `skills` to Agent")
        try:
            return await self._skills.activate_explicitly(name)
        except ToolError as error:
            raise ConfigurationError(str(error)) from error

    async def deactivate_skill(self, name: str) -> bool:
        """Make a skill inactive, also for a later resume of the session. Return whether it was active."""
        return self._skills is not None and await self._skills.deactivate(name)

    # -- runs -------------------------------------------------------------------------------------------------------

    async def run(
        self, prompt: Prompt, *, on_event: EventCallback | None = None, **options: Unpack[RunArguments]
    ) -> RunResult:
        """Run the agent on a prompt and return the result.

        Raises `ProviderError` (or a subclass) if the model failed, `AbortedError` if the run was aborted,
        `RunInProgressError` if another run is active, `SessionError` if the session cannot be stored or another agent
        has continued it, and any exception of `on_event`, which ends the run. A run that ends at a limit or that an
        input filter rejects returns a result.
        """
        prompt_messages = to_prompt_messages(prompt)
        begun = self._begin(_RunOptions(**options))
        return _raise_error(await self._execute(begun, prompt_messages, on_event or _ignore_event))

    async def attempt(
        self, prompt: Prompt, *, on_event: EventCallback | None = None, **options: Unpack[RunArguments]
    ) -> RunResult:
        """Run as `run` does, but return the result also of a failed or aborted run: `RunResult.error` is the reason.

        Without prompt messages, the run continues a history that ends with a user message. Raises the other errors of
        `run`.
        """
        prompt_messages = to_prompt_messages(prompt)
        begun = self._begin(_RunOptions(kind=None if prompt_messages else "default", **options))
        return await self._execute(begun, prompt_messages, on_event or _ignore_event)

    def run_sync(
        self, prompt: Prompt, *, on_event: EventCallback | None = None, **options: Unpack[RunArguments]
    ) -> RunResult:
        """Run as `run` does and block until the run has ended; for code without an event loop.

        Raises the errors of `run`, and `ConfigurationError` inside of an event loop.
        """
        if is_in_event_loop():
            raise ConfigurationError("run_sync() would block this event loop; use `await agent.run(...)`")

        async def run_and_close() -> RunResult:
            try:
                return await self.run(prompt, on_event=on_event, **options)
            finally:
                await self._close_connections()  # they belong to this event loop

        return anyio.run(run_and_close)

    def run_stream(self, prompt: Prompt, **options: Unpack[RunArguments]) -> AbstractAsyncContextManager[RunStream]:
        """Run as `run` does and stream the events: `async with agent.run_stream(...) as events`.

        Failures do not raise here; the `loop_end` event reports them. Leaving the block aborts an active run.
        """
        return self._stream(_RunOptions(**options), to_prompt_messages(prompt))

    async def continue_run(  # noqa: PLR0913  # keyword arguments, each documented below
        self,
        kind: ContinuationKind = "default",
        *,
        at: int | None = None,
        prompt: Prompt = (),
        behavior: Behavior | None = None,
        hooks: HooksArgument | None = None,
        deps: Any = None,
        on_event: EventCallback | None = None,
    ) -> RunResult:
        """Continue the conversation at its end, at its last prompt or at an earlier message.

        Args:
            kind: "default" continues at the end of the history, "rerun" repeats the last user prompt from its position,
                "branch" continues after the first `at` messages; the remaining messages stay with their own loop.
            at: Number of messages that a branch keeps.
            prompt: A prompt that follows the kept messages; none by default.
            behavior: Options that override the agent's.
            hooks: Handlers for this run.
            deps: Dependencies of the tools in this run, instead of the agent's.
            on_event: Callback that receives each event.

        Raises the errors of `run`, and `ConfigurationError` if the history has nothing to continue from.
        """
        prompt_messages = to_prompt_messages(prompt)
        begun = self._begin(
            _RunOptions(kind=kind, at=at, behavior=behavior, hooks=hooks, deps=deps, prompted=bool(prompt_messages))
        )
        return _raise_error(await self._execute(begun, prompt_messages, on_event or _ignore_event))

    def continue_stream(
        self,
        kind: ContinuationKind = "default",
        *,
        at: int | None = None,
        prompt: Prompt = (),
        behavior: Behavior | None = None,
        hooks: HooksArgument | None = None,
    ) -> AbstractAsyncContextManager[RunStream]:
        """Continue as `continue_run` does and stream the events."""
        prompt_messages = to_prompt_messages(prompt)
        options = _RunOptions(kind=kind, at=at, behavior=behavior, hooks=hooks, prompted=bool(prompt_messages))
        return self._stream(options, prompt_messages)

    # -- messages to it ---------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        return self._engine is not None

    def steer(self, message: str | UserMessage) -> None:
        """Queue a message that the active run reads between two tools or turns. Thread-safe.

        Raises `MessageError` for a message without content.
        """
        self.steering.put(to_user_message(message, "steering"))

    def follow_up(self, message: str | UserMessage) -> None:
        """Queue a message that the run reads when it would otherwise end. Thread-safe.

        Raises `MessageError` for a message without content.
        """
        self.follow_ups.put(to_user_message(message, "follow_up"))

    def abort(self, reason: str = "aborted by the user") -> None:
        """End the active run in an orderly way; without one, do nothing. Call it from the event loop's thread only."""
        if self._engine is not None:
            self._engine.abort(reason)

    # -- the conversation -------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The stored form of the conversation."""
        return self.conversation.session

    @property
    def session_id(self) -> str:
        """The id of the current session."""
        return self.session.session_id

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the current history, oldest first."""
        return tuple(self.conversation.history)

    def reset(self) -> None:
        """Start a new session with an empty history and empty queues. Raises `RunInProgressError`."""
        self._require_idle()
        self.steering.clear()
        self.follow_ups.clear()
        self._renew_session("explicit")

    def new_session(self) -> str:
        """Start a new session with an empty history and return its id. Raises `RunInProgressError`."""
        self._require_idle()
        return self._renew_session("explicit")

    def check_and_rotate(self, threshold: float) -> str | None:
        """Start a new session if the current one was idle for `threshold` seconds.

        Returns the new session's id, or None if the current session remains.
        """
        self._require_idle()
        return self._renew_session("inactivity") if self.conversation.is_idle(threshold) else None

    def save_messages(self) -> bytes:
        """Return the history as JSON."""
        return self.conversation.to_json()

    def restore_messages(self, data: bytes | str) -> None:
        """Replace the history by a saved one, in a new session. Raises `MessageError` if it is invalid."""
        self._require_idle()
        before = self.session.session_id
        self.conversation.restore(data)
        self._reset_skills(restores=True)
        self._dedup_memory.forget(before)

    # -- several agents with one conversation or one preset -----------------------------------------------------------

    def twin(self, changes: AgentChanges) -> "Agent":
        """Return an agent with these changes over a copy of the conversation, without a store.

        Hooks and middleware are shared with this agent; the twin has no handoffs, and its events are not published.
        Raises `ConfigurationError` for invalid changes.
        """
        twin = copy(self)
        for name, value in changes.given().items():
            setattr(twin, name, value)
        twin.behavior = resolve_behavior(twin.behavior, self.behavior)
        twin._build_toolset(twin.tools)  # noqa: SLF001  # an instance of this class
        twin.steering, twin.follow_ups = MessageQueue(), MessageQueue()
        twin.conversation = self.conversation.copy()
        twin._dedup_memory, twin._engine, twin._roster = DedupMemory(), None, None  # noqa: SLF001
        if self._skills is not None:
            twin._skills = self._skills.twin(lambda: twin.session.state)  # noqa: SLF001
        return twin

    @property
    def config_id(self) -> str:
        """The configuration segment in the ids of this agent's loops."""
        return self._config(self._first(self.behavior, self.system_prompt)).config_id

    @config_id.setter
    def config_id(self, config_id: str) -> None:
        self._config_id = config_id

    @property
    def next_loop_id(self) -> str:
        """The id of the next loop with the agent's own behavior."""
        return self.conversation.next_loop_id(self.config_id)

    @asynccontextmanager
    async def occupied(self, worker: Abortable) -> AsyncIterator[None]:
        """Hold the session for the block, whose work `abort` ends by `worker.abort`; store the session at the end.

        Raises `RunInProgressError`, and the errors of a session that cannot be locked or stored.
        """
        self._require_idle()
        self.conversation.mark()
        async with self._hold_session(worker), self._mcp_servers_open():
            yield

    # -- internals --------------------------------------------------------------------------------------------------

    def _renew_session(self, formation: Formation) -> str:
        self._dedup_memory.forget(self.session.session_id)
        self._reset_skills()
        return self.conversation.renew(formation)

    def _reset_skills(self, *, restores: bool = False) -> None:
        if self._skills is not None:
            self._skills.reset(restores=restores)

    def _require_idle(self) -> None:
        if self._engine is not None:
            raise RunInProgressError("this agent is running: use steer() or follow_up(), or abort() it first")

    def _mcp_host(self, servers: "Sequence[McpServer]", connector: "Connector | None") -> "McpHost | None":
        """Return the host of the servers, None without any. Raises `ConfigurationError` for invalid servers."""
        if not servers:
            return None
        from agent_loop.mcp.host import McpHost  # noqa: PLC0415  # most agents have no servers

        scopes = (self.hooks, self._middleware_hooks)
        return McpHost(servers, connector=connector, monotonic=self.surroundings.monotonic, idle_scopes=scopes)

    def _skill_host(self, skills: "SkillSettings | SkillDirectories") -> "SkillHost":
        from agent_loop.skills.host import SkillHost  # noqa: PLC0415  # most agents have no skills
        from agent_loop.skills.settings import as_settings  # noqa: PLC0415

        return SkillHost(as_settings(skills), (self.hooks, self._middleware_hooks), lambda: self.session.state)

    def inherit_skills(self, parent: "SkillHost") -> None:
        """Use the skills of another agent, of which none is active here."""
        self._skills = parent.heir(lambda: self.session.state, (self.hooks, self._middleware_hooks))

    async def _close_connections(self) -> None:
        others = () if self._roster is None else self._roster.providers()
        for provider in (self.provider, *self.fallbacks, *others):
            if isinstance(provider, ClosableProvider):
                await provider.aclose()

    def _build_toolset(self, tools: Sequence[ToolLike]) -> Toolset:
        return Toolset(tools, aliases=self._aliases)

    # -- the agent that has the conversation --------------------------------------------------------------------------

    def _roster_of(self, handoffs: "Sequence[HandoffLike]") -> "Roster | None":
        """Return the agents that can have the conversation, None without handoffs. Raises `ConfigurationError`."""
        if not handoffs:
            return None
        from agent_loop.handoffs import Roster  # noqa: PLC0415  # most agents have no handoffs

        return Roster(self.name, handoffs)

    def _first(self, behavior: Behavior, system_prompt: str) -> ActingAgent:
        """Return the settings of this agent, which has the conversation until it hands it off."""
        return ActingAgent(
            name=self.name,
            provider=self.provider,
            fallbacks=self.fallbacks,
            system_prompt=system_prompt,
            behavior=behavior,
            hooks=Hooks(),
        )

    def _acting(self, options: "_RunOptions", holder: tuple[str, int]) -> ActingAgent:
        """Return the settings of the agent that has the conversation, with the number of messages before that."""
        name, since = holder
        behavior = resolve_behavior(options.behavior, self.behavior)
        first = self._first(behavior, self.system_prompt if options.system_prompt is None else options.system_prompt)
        if self._roster is None or name in {"", self.name}:
            return first
        if name in self._roster:
            return self._roster.acting(name, first, self.conversation.history[:since])

        def note(context: BeforeAgent) -> None:
            context.notes.append(f"the conversation was with {name!r}, which is no handoff of this agent any more")

        return replace(first, hooks=Hooks({"agent:before": note}))

    def _begin(self, options: "_RunOptions") -> "_BegunRun":
        """Return the first loop of a run, whose agent is the one that has the conversation."""
        self._require_idle()
        if options.kind not in (None, *get_args(ContinuationKind)):
            kinds = ", ".join(get_args(ContinuationKind))
            raise ConfigurationError(f"{options.kind!r} is not a way to continue: {kinds}; a text is prompt=...")
        return _BegunRun(self._new_run(options, self.conversation.holder(options.kind, options.at)), options)

    def _new_run(self, options: "_RunOptions", holder: tuple[str, int], earlier: LoopRun | None = None) -> LoopRun:
        """Return a new loop, which follows `earlier` in the same run.

        `holder` is the agent that has the conversation, and the number of messages before that.
        """
        acting = self._acting(options, holder)
        resolved = acting.behavior
        prompted = options.prompted or bool(self.steering or self.follow_ups)
        start = self.conversation.start(options.kind, options.at, prompted=prompted, config=self._config(acting))
        spawn, bus = options.spawned_by, self._event_bus
        run_hooks = options.hooks if isinstance(options.hooks, Hooks) else Hooks(options.hooks)
        run = LoopRun(
            loop_id=start.loop_id,
            session_id=self.session.session_id,
            agent_id=self.conversation.agent_id,
            provider=acting.provider,
            fallbacks=list(acting.fallbacks),
            deps=self.deps if options.deps is None else options.deps,
            toolset=self._build_toolset(self.tools),
            system=acting.system_prompt,
            overrides_system=options.system_prompt is not None and acting.system_prompt == options.system_prompt,
            behavior=resolved,
            scopes=(self.first_hooks, self.hooks, self._middleware_hooks, run_hooks, acting.hooks),
            history=self.conversation.history,
            base=start.base,
            state=self.session.state,
            workspace=self.workspace,
            steering=self.steering,
            follow_ups=self.follow_ups,
            surroundings=self.surroundings,
            sink=_ignore_event,
            ask=self._ask or (None if bus is None else bus.asker(self.session_id, start.loop_id)),
            save=self.conversation.save,
            parent_loop_id=start.parent_loop_id or (None if spawn is None else spawn.parent_loop_id),
            kind=options.kind,
            trigger=first_trigger(options.kind, spawn),
            depth=0 if spawn is None else spawn.depth,
            store=self.conversation.store,
            loop_index=start.index,
            prior_turns=start.prior_turns,
            metadata=options.metadata,
            acting="" if self._roster is None else acting.name,
            agent_since=holder[1] if acting.name == holder[0] else 0,
            inherited=acting.inherited,
            earlier=earlier,
        )
        if self._roster is not None and self._roster.targets_of(acting.name):
            from agent_loop.handoffs import TransferTool  # noqa: PLC0415  # most agents have no handoffs

            run.toolset = self._build_toolset([*self.tools, TransferTool(self._roster, run)])
        skills = self._skills if acting.skills is None else self._skill_host(acting.skills) if acting.skills else None
        if skills is not None:
            from agent_loop.skills.run import SkillRun  # noqa: PLC0415  # most agents have no skills

            run.skills = skills
            SkillRun(skills, run).install()
        run.add_scope(self._gates(run))
        run.context = ContextManager(
            resolved.context,
            strategy=self._compaction,
            summarize=partial(request_summary, run),
            window=request_window(acting.provider.capabilities.context_window, resolved.max_tokens),
        )
        saved_context = self.session.state.extra.get(CONTEXT_KEY)
        if saved_context is not None:
            run.context.load(saved_context, run.sendable())
        if self._mcp is not None:
            from agent_loop.mcp.run import McpRun  # noqa: PLC0415  # most agents have no servers

            McpRun(self._mcp, run).install()
        elif any(mcp_origin_of(tool) is not None for tool in run.toolset):  # of the parent of a sub-agent
            from agent_loop.mcp.calls import call_hooks  # noqa: PLC0415  # as above

            run.add_scope(call_hooks(run))
        return run

    def _config(self, acting: ActingAgent) -> LoopConfig:
        model, able, behavior = acting.provider, acting.provider.capabilities, acting.behavior
        config_id = self._config_id if acting.name == self.name else acting.name
        return LoopConfig(
            config_id=config_segment(model.id, model.model, behavior.thinking, config_id),
            name=f"{model.id}:{model.model}",
            provider=model.id,
            model=model.model,
            api=getattr(model, "api", ""),
            base_url=getattr(model, "base_url", None),
            reasoning=able.thinking,
            context_window=able.context_window,
            thinking=behavior.thinking,
            max_tokens=behavior.max_tokens,
            temperature=behavior.temperature,
        )

    def _gates(self, run: LoopRun) -> Hooks:
        async def report_exceeded(exceeded: ToolBudgetExceeded) -> None:
            await run.hooks.fire("tool-budget:exceeded", exceeded)
            await run.emit(
                BudgetExceeded(
                    loop_id=run.loop_id,
                    budget="tool_calls",
                    limit=exceeded.max_calls,
                    used=exceeded.count,
                    tool=exceeded.tool,
                )
            )

        return framework_gates(
            run.behavior,
            steer=self._queue_budget_message,
            on_exceeded=report_exceeded,
            memory=self._dedup_memory,
            used=run.tool_counts,
        )

    def _queue_budget_message(self, text: str) -> None:
        self.steering.put(user(text, origin="budget"))

    async def _execute(
        self, begun: "_BegunRun", prompt_messages: Sequence[UserMessage], watch: EventCallback
    ) -> RunResult:
        first = begun.run
        chain = LoopChain(first, self._new_engine(first, prompt_messages, watch))

        def next_loop(run: LoopRun) -> tuple[LoopRun, Engine]:
            self._save_context(run)
            options = replace(begun.options, kind="default", at=None, prompted=True)
            following = self._new_run(options, self.conversation.holder("default", None), run)
            return following, self._new_engine(following, (), watch)

        async with self._hold_session(chain, lambda: self._save_context(chain.run)), self._mcp_servers_open():
            ending = await chain.execute(next_loop)
        run = chain.run
        return RunResult(
            text=ending.text or "",
            output=ending.typed_output,
            status=ending.status,
            loop_id=run.loop_id,
            session_id=run.session_id,
            usage=run.tracker.run_usage,
            turns=run.tracker.run_turns,
            messages=tuple(run.history[first.base :]),
            limit=ending.limit,
            error=ending.error,
            agent=run.acting or self.name,
            rejection=ending.rejection,
        )

    def _mcp_servers_open(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which MCP servers can be connected; nested ones share the connections."""
        return nullcontext() if self._mcp is None else self._mcp.open()

    @asynccontextmanager
    async def _hold_session(self, worker: Abortable, before_saving: Callable[[], object] = bool) -> AsyncIterator[None]:
        bus = self.conversation.event_bus
        self._engine = worker
        try:
            with nullcontext() if bus is None else bus.running(self):
                await self.conversation.hold()
                try:
                    yield
                finally:
                    await self._store_and_release(before_saving)
        finally:
            self._engine = None

    async def _store_and_release(self, before_saving: Callable[[], object]) -> None:
        """Store the session and release its lock, also if storing fails."""
        try:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP):
                before_saving()
                await self.conversation.save()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP):
                await self.conversation.release()

    def _save_context(self, run: LoopRun) -> None:
        """Save the compaction state so that the next run reuses it and summarizes nothing twice."""
        saved_context = run.context.save(run.sendable())
        if saved_context is None:
            self.session.state.extra.pop(CONTEXT_KEY, None)
        else:
            self.session.state.extra[CONTEXT_KEY] = saved_context

    def _new_engine(self, run: LoopRun, prompt_messages: Sequence[UserMessage], watch: EventCallback) -> Engine:
        failed = False

        async def sink(event: LoopEvent) -> None:
            nonlocal failed
            self.conversation.on_event(event)
            try:
                if not failed:
                    await watch(event)
            except Exception:
                failed = True  # ends the run in an orderly way; the callback is not called again
                raise

        run.sink = sink
        return Engine(run, prompt_messages, filters=self.input_filters, make_toolset=self._build_toolset)

    @asynccontextmanager
    async def _stream(self, options: "_RunOptions", prompt_messages: Sequence[UserMessage]) -> AsyncIterator[RunStream]:
        begun = self._begin(options)

        async def execute(watch: EventCallback) -> RunResult:
            return await self._execute(begun, prompt_messages, watch)

        async with open_stream(execute, self.abort) as stream:
            yield stream


async def _ignore_event(_event: LoopEvent) -> None:
    """Discard the event: the run has no subscriber."""


def _raise_error(result: RunResult) -> RunResult:
    if result.error is not None:
        raise result.error
    return result
