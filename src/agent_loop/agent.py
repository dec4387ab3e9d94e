"""The agent: a provider, tools, hooks and a conversation, and the methods that run the loop over them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, Unpack, get_args

import anyio

from agent_loop.agent_options import MAIN, AgentChanges, HooksArgument, LoopArguments, RunArguments, as_workspace
from agent_loop.agent_parts import AgentParts, make_mcp_host, make_roster, make_skill_host
from agent_loop.behavior import DEFAULTS, Behavior, resolve_behavior
from agent_loop.context.compaction import CompactionStrategy
from agent_loop.conversation import AgentConversation
from agent_loop.errors import ConfigurationError, RunInProgressError, ToolError
from agent_loop.events import ContinuationKind, LoopEvent
from agent_loop.gates import DedupMemory
from agent_loop.hooks.registry import Hooks, Middleware
from agent_loop.loop.chain import LoopChain
from agent_loop.loop.engine import CLEANUP, Engine
from agent_loop.loop.inputs import InputFilter, MessageQueue, Prompt, to_prompt_messages, to_user_message
from agent_loop.loop.run import AskUser, LoopRun, Surroundings, is_in_event_loop
from agent_loop.loop_setup import first_agent, ignore_event, loop_config, save_context, set_up_loop
from agent_loop.messages import Message, UserMessage
from agent_loop.providers import Provider
from agent_loop.providers.provider import ClosableProvider
from agent_loop.providers.registry import to_provider
from agent_loop.results import EventCallback, RunResult, RunStream, open_stream
from agent_loop.sessions.session import Formation, Session
from agent_loop.sessions.store import SessionStore
from agent_loop.skill_files import Skill
from agent_loop.tools.tool import Tool
from agent_loop.tools.toolset import ToolLike, as_tool
from agent_loop.workspace import Workspace

if TYPE_CHECKING:
    from agent_loop.handoffs import HandoffLike
    from agent_loop.mcp.client import Connector
    from agent_loop.mcp.servers import McpServer
    from agent_loop.publishing.bus import EventBus
    from agent_loop.skills.host import SkillHost
    from agent_loop.skills.settings import SkillDirectories, SkillSettings


class Abortable(Protocol):
    """What `Agent.abort` ends: one run, or several in parallel."""

    def abort(self, reason: str) -> None:
        """End the work in an orderly way. Called from the event loop's thread only."""
        ...


@dataclass(frozen=True, slots=True)
class _BegunRun:
    """The first loop of a run, and the arguments of the run for the loops that follow."""

    run: LoopRun
    options: LoopArguments


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
        self.workspace = as_workspace(workspace)
        self.input_filters = tuple(input_filters)
        self.surroundings = surroundings or Surroundings()
        self.steering = MessageQueue()
        self.follow_ups = MessageQueue()
        self.conversation = AgentConversation(
            agent_id or self.surroundings.new_id(),
            store,
            session,
            self.surroundings,
            None if self.workspace is None else str(self.workspace.root),
        )
        self.name = name
        middleware_hooks = Hooks(middleware=middleware)
        scopes = (self.hooks, middleware_hooks)
        self.parts = AgentParts(
            middleware_hooks=middleware_hooks,
            aliases=dict(aliases or {}),
            config_id=config_id,
            ask=ask,
            compaction=compaction,
            event_bus=event_bus,
            mcp=make_mcp_host(mcp_servers, mcp_connector, scopes, self.surroundings),
            skills=make_skill_host(skills, scopes, lambda: self.session.state),
            roster=make_roster(name, handoffs),
            dedup_memory=DedupMemory(),
        )
        """What it is made of besides the settings above; for the modules of this package."""
        self.parts.toolset(self.tools)  # fails now, not during a run, if names are invalid
        self._engine: Abortable | None = None
        self._context = AsyncExitStack()
        self.conversation.event_bus = event_bus
        if event_bus is not None:
            event_bus.attach(self)

    # -- MCP servers ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start to connect the MCP servers, which stay connected until the end of the context."""
        if self.parts.mcp is not None:
            await self._context.enter_async_context(self.parts.mcp.open())
            self.parts.mcp.warm_up()
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
        if self.parts.mcp is None:
            await self.load_skills()
            return
        if not self.parts.mcp.is_open:
            raise ConfigurationError("warmup() connects servers for an `async with agent:` block; use it inside one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.load_skills)
            tasks.start_soon(self.parts.mcp.connect)

    # -- skills -----------------------------------------------------------------------------------------------------

    async def load_skills(self) -> tuple[Skill, ...]:
        """Search the skills and return them, sorted by name. They are searched once, at the latest by the first run."""
        if self.parts.skills is None:
            return ()
        await self.parts.skills.resolve()
        return self.parts.skills.skills

    @property
    def active_skills(self) -> tuple[str, ...]:
        """The names of the active skills, in the order of their activation."""
        return () if self.parts.skills is None else tuple(self.parts.skills.active)

    async def activate_skill(self, name: str) -> str:
        """Make a skill active for the current or the next run, whose requests contain its instructions; return them.

        Commands in the instructions are not run. Raises `ConfigurationError` if there is no such skill, too many are
        active, or its file cannot be read.
        """
        if self.parts.skills is None:
            raise ConfigurationError("this agent has no skills; pass `skills` to Agent")
        try:
            return await self.parts.skills.activate_explicitly(name)
        except ToolError as error:
            raise ConfigurationError(str(error)) from error

    async def deactivate_skill(self, name: str) -> bool:
        """Make a skill inactive, also for a later resume of the session. Return whether it was active."""
        return self.parts.skills is not None and await self.parts.skills.deactivate(name)

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
        begun = self._begin(LoopArguments(**options))
        return _raise_error(await self._execute(begun, prompt_messages, on_event or ignore_event))

    async def attempt(
        self, prompt: Prompt, *, on_event: EventCallback | None = None, **options: Unpack[RunArguments]
    ) -> RunResult:
        """Run as `run` does, but return the result also of a failed or aborted run: `RunResult.error` is the reason.

        Without prompt messages, the run continues a history that ends with a user message. Raises the other errors of
        `run`.
        """
        prompt_messages = to_prompt_messages(prompt)
        begun = self._begin(LoopArguments(kind=None if prompt_messages else "default", **options))
        return await self._execute(begun, prompt_messages, on_event or ignore_event)

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
        return self._stream(LoopArguments(**options), to_prompt_messages(prompt))

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
            LoopArguments(kind=kind, at=at, behavior=behavior, hooks=hooks, deps=deps, prompted=bool(prompt_messages))
        )
        return _raise_error(await self._execute(begun, prompt_messages, on_event or ignore_event))

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
        options = LoopArguments(kind=kind, at=at, behavior=behavior, hooks=hooks, prompted=bool(prompt_messages))
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
        self.parts.dedup_memory.forget(before)

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
        twin.steering, twin.follow_ups = MessageQueue(), MessageQueue()
        twin.conversation = self.conversation.copy()
        skills = None if self.parts.skills is None else self.parts.skills.twin(lambda: twin.session.state)
        twin.parts = replace(self.parts, dedup_memory=DedupMemory(), roster=None, skills=skills)
        twin.parts.toolset(twin.tools)  # raises
        twin._engine = None  # noqa: SLF001  # an instance of this class
        return twin

    @property
    def config_id(self) -> str:
        """The configuration segment in the ids of this agent's loops."""
        return loop_config(self, first_agent(self, self.behavior, self.system_prompt)).config_id

    @config_id.setter
    def config_id(self, config_id: str) -> None:
        self.parts.config_id = config_id

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
        self.parts.dedup_memory.forget(self.session.session_id)
        self._reset_skills()
        return self.conversation.renew(formation)

    def _reset_skills(self, *, restores: bool = False) -> None:
        if self.parts.skills is not None:
            self.parts.skills.reset(restores=restores)

    def _require_idle(self) -> None:
        if self._engine is not None:
            raise RunInProgressError("this agent is running: use steer() or follow_up(), or abort() it first")

    def inherit_skills(self, parent: "SkillHost") -> None:
        """Use the skills of another agent, of which none is active here."""
        self.parts.skills = parent.heir(lambda: self.session.state, (self.hooks, self.parts.middleware_hooks))

    async def _close_connections(self) -> None:
        others = () if self.parts.roster is None else self.parts.roster.providers()
        for provider in (self.provider, *self.fallbacks, *others):
            if isinstance(provider, ClosableProvider):
                await provider.aclose()

    def _begin(self, options: LoopArguments) -> _BegunRun:
        """Return the first loop of a run, whose agent is the one that has the conversation."""
        self._require_idle()
        if options.kind not in (None, *get_args(ContinuationKind)):
            kinds = ", ".join(get_args(ContinuationKind))
            raise ConfigurationError(f"{options.kind!r} is not a way to continue: {kinds}; a text is prompt=...")
        return _BegunRun(set_up_loop(self, options, self.conversation.holder(options.kind, options.at)), options)

    async def _execute(
        self, begun: _BegunRun, prompt_messages: Sequence[UserMessage], watch: EventCallback
    ) -> RunResult:
        first = begun.run
        chain = LoopChain(first, self._new_engine(first, prompt_messages, watch))

        def next_loop(run: LoopRun) -> tuple[LoopRun, Engine]:
            save_context(self, run)
            options = replace(begun.options, kind="default", at=None, prompted=True)
            following = set_up_loop(self, options, self.conversation.holder("default", None), run)
            return following, self._new_engine(following, (), watch)

        async with self._hold_session(chain, lambda: save_context(self, chain.run)), self._mcp_servers_open():
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
        return nullcontext() if self.parts.mcp is None else self.parts.mcp.open()

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
        return Engine(run, prompt_messages, filters=self.input_filters, make_toolset=self.parts.toolset)

    @asynccontextmanager
    async def _stream(self, options: LoopArguments, prompt_messages: Sequence[UserMessage]) -> AsyncIterator[RunStream]:
        begun = self._begin(options)

        async def execute(watch: EventCallback) -> RunResult:
            return await self._execute(begun, prompt_messages, watch)

        async with open_stream(execute, self.abort) as stream:
            yield stream


def _raise_error(result: RunResult) -> RunResult:
    if result.error is not None:
        raise result.error
    return result
