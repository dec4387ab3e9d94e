"""The same client for scripts without an event loop: every call blocks, events come from a plain `for`.

Example:
    with BlockingAgentMux() as mux:
        run = mux.run(agent="claude", prompt="fix the failing test")
        for event in run:
            print(event.type)
        print(run.result().text)
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_mux.client import AgentMux, Observer
from agent_mux.client.namespaces import Namespaces
from agent_mux.events import AgentEvent
from agent_mux.run.base import Boundary, Run, RunState
from agent_mux.run.result import RunResult
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction, Response
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.profiles import Profiles
from agent_mux.settings.resolver import ResolvedOptions

if TYPE_CHECKING:
    from agent_mux.client.remote.resources import RemoteAdapters, RemoteModels, RemoteProfiles
    from agent_mux.client.remote.runs import RemoteRuns
    from agent_mux.client.remote.sessions import RemoteSessions


class BlockingRun:
    """A run whose methods block. Callbacks are called in the thread of the event loop."""

    def __init__(self, portal: BlockingPortal, run: Run) -> None:
        self._portal = portal
        self._run = run

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self._run.run_id

    @property
    def state(self) -> RunState:
        """Where the run is."""
        return self._run.state

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, once known."""
        return self._run.session_id

    @property
    def queue_position(self) -> int | None:
        """Where the run stands in the queue. As `RunHandle.queue_position`."""
        return self._portal.call(lambda: self._run.queue_position)

    @property
    def journal(self) -> str | None:
        """Path of the run's recording."""
        return self._run.journal

    def __iter__(self) -> Iterator[AgentEvent]:
        """Every event from the first, until the run is over."""
        events = self._run.events().__aiter__()

        async def next_event() -> AgentEvent | None:
            return await anext(events, None)

        while (event := self._portal.call(next_event)) is not None:
            yield event

    def on(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call `handler` for each event of a type, in the thread of the event loop."""
        self._portal.call(lambda: (self._run.on(event_type, handler),))
        return self

    def result(self) -> RunResult:
        """Wait for the end."""
        return self._portal.call(self._run.result)

    def once(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """As `on`, for the next event only."""
        self._portal.call(lambda: (self._run.once(event_type, handler),))
        return self

    def off(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call it no more."""
        self._portal.call(lambda: (self._run.off(event_type, handler),))
        return self

    @property
    def pending(self) -> list[PendingInteraction]:
        """What the agent waits for now."""
        return self._portal.call(lambda: self._run.interaction.pending)

    def respond(self, interaction_id: str, response: Response) -> Delivery:
        """Answer a request, once. As `InteractionChannel.respond`."""
        return self._portal.call(self._run.interaction.respond, interaction_id, response)

    def approve(self, *, always: bool = False) -> Delivery:
        """Allow the oldest pending approval. As `RunHandle.approve`."""
        return self._portal.call(lambda: self._run.approve(always=always))

    def deny(self, reason: str | None = None) -> Delivery:
        """Refuse the oldest pending approval. As `RunHandle.deny`."""
        return self._portal.call(self._run.deny, reason)

    def send(self, text: str) -> Delivery:
        """Send a prompt. As `RunHandle.send`."""
        return self._portal.call(self._run.send, text)

    def queue(self, text: str, when: Boundary = "next-turn") -> Delivery:
        """Send a prompt for later. As `RunHandle.queue`."""
        return self._portal.call(self._run.queue, text, when)

    def steer(self, text: str) -> Delivery:
        """Send a message into the running turn. As `RunHandle.steer`."""
        return self._portal.call(self._run.steer, text)

    def continue_(self, prompt: str) -> Delivery:
        """Send a prompt once the running turn is over. As `RunHandle.continue_`."""
        return self._portal.call(self._run.continue_, prompt)

    def interrupt(self) -> Delivery:
        """Stop the agent's current operation. As `RunHandle.interrupt`."""
        return self._portal.call(self._run.interrupt)

    def pause(self) -> Delivery:
        """Stop all processes of the run. As `RunHandle.pause`."""
        return self._portal.call(self._run.pause)

    def resume(self) -> Delivery:
        """Let them go on. As `RunHandle.resume`."""
        return self._portal.call(self._run.resume)

    def abort(self) -> Delivery:
        """End the run. Returns when it is over. As `RunHandle.abort`."""
        return self._portal.call(self._run.abort)

    def close(self) -> Delivery:
        """No more prompts will come. As `RunHandle.close`."""
        return self._portal.call(self._run.close)


class _Blocking:
    """A client whose event loop lives in a thread of its own."""

    def __init__(self, mux: AbstractAsyncContextManager[Any], backend: str) -> None:
        self._client = mux
        self._backend = backend
        self._portal: BlockingPortal | None = None
        self._closing: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> Self:
        portal_manager = start_blocking_portal(self._backend)
        self._portal = portal_manager.__enter__()
        mux_manager = self._portal.wrap_async_context_manager(self._client)
        mux_manager.__enter__()
        self._closing = [mux_manager, portal_manager]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        managers, self._closing = self._closing, []
        for manager in managers:
            manager.__exit__(kind, error, trace)
        self._portal = None

    def _begun(self, start: Callable[[], Awaitable[Run]]) -> BlockingRun:
        if self._portal is None:
            kind = type(self).__name__
            raise RuntimeError(f"start runs inside of `with {kind}() as mux:`")

        async def begin() -> tuple[Run]:  # in a tuple: a handle can be awaited, and the portal would wait for its end
            return (await start(),)

        (run,) = self._portal.call(begin)
        return BlockingRun(self._portal, run)


class BlockingAgentMux(_Blocking, Namespaces):
    """An `AgentMux` for scripts. Takes the same arguments."""

    def __init__(self, *, backend: str = "asyncio", **arguments: Any) -> None:
        """Take the arguments of `AgentMux`; `backend` is `asyncio` or `trio`."""
        self._mux = AgentMux(**arguments)
        super().__init__(self._mux, backend)
        self.adapters = self._mux.adapters
        self._config_dir = self._mux._config_dir  # noqa: SLF001  # the client is this one, for scripts

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with each run that is started from now on. As `AgentMux.on_run`."""
        return self._mux.on_run(observer)

    @property
    def profiles(self) -> Profiles:
        """Options of runs under a name. As `AgentMux.profiles`."""
        return self._mux.profiles

    def settled(self, options: RunOptions | None = None, /, **fields: Any) -> ResolvedOptions:
        """What `run` would do with this. As `AgentMux.settled`."""
        return self._mux.settled(options, **fields)

    def run(
        self, options: RunOptions | ResolvedOptions | None = None, /, *, owner: str = "", **fields: Any
    ) -> BlockingRun:
        """Start a run and return at once. As `AgentMux.run`."""
        return self._begun(lambda: self._mux.start(options, owner=owner, **fields))


class BlockingRemoteMux(_Blocking):
    """A `RemoteMux` for scripts. Takes the same arguments."""

    def __init__(self, url: str | None = None, *, backend: str = "asyncio", **arguments: Any) -> None:
        """Take the arguments of `RemoteMux`; `backend` is `asyncio` or `trio`."""
        from agent_mux.client.remote import RemoteMux  # noqa: PLC0415  # it needs an extra

        self._mux = RemoteMux(url, **arguments)
        super().__init__(self._mux, backend)

    def run(self, options: RunOptions | None = None, /, **fields: Any) -> BlockingRun:
        """Start a run and return when the service has it. As `RemoteMux.start`."""
        return self._begun(lambda: self._mux.start(options, **fields))

    def attach(self, run_id: str, /, **fields: Any) -> BlockingRun:
        """A run of the service, whoever started it. As `RemoteMux.attach`."""
        return self._begun(lambda: self._mux.attach(run_id, **fields))

    @property
    def sessions(self) -> "RemoteSessions":
        """What the agents stored there. As `RemoteMux.sessions`."""
        return self._mux.sessions

    @property
    def runs(self) -> "RemoteRuns":
        """The runs that the service remembers. As `RemoteMux.runs`."""
        return self._mux.runs

    @property
    def models(self) -> "RemoteModels":
        """What is known there of models. As `RemoteMux.models`."""
        return self._mux.models

    @property
    def profiles(self) -> "RemoteProfiles":
        """Options of runs under a name. As `RemoteMux.profiles`."""
        return self._mux.profiles

    @property
    def adapters(self) -> "RemoteAdapters":
        """The agents that the service can drive. As `RemoteMux.adapters`."""
        return self._mux.adapters
