"""Blocking clients for scripts without an event loop: every call blocks, and events come from a plain `for` loop.

Example:
    with BlockingAgentMux() as mux:
        run = mux.run(agent="claude", prompt="fix the failing test", approval_mode="yolo")
        for event in run:
            print(event.type)
        print(run.result().text)
"""

import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, TypeVarTuple, Unpack, get_args, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_mux.client import AgentMux, Observer
from agent_mux.client.arguments import AgentMuxArguments, RemoteMuxArguments
from agent_mux.client.namespaces import Namespaces
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import AgentEvent
from agent_mux.run.base import Boundary, Run, RunState
from agent_mux.run.result import RunResult
from agent_mux.run.subscriptions import Subscriptions
from agent_mux.sdk.codec import Delivery
from agent_mux.sdk.interactions import PendingInteraction, Response
from agent_mux.sdk.option_fields import AttachOptions, RunOptionFields
from agent_mux.sdk.options import ApprovalMode, RunOptions
from agent_mux.settings.profiles import Profiles
from agent_mux.settings.resolver import ResolvedOptions

if TYPE_CHECKING:
    from agent_mux.client.comparisons import CandidateLike, ComparisonFields
    from agent_mux.client.remote.comparisons import RemoteComparisons
    from agent_mux.client.remote.resources import RemoteAdapters, RemoteModels, RemoteProfiles
    from agent_mux.client.remote.run_queries import RemoteRuns
    from agent_mux.client.remote.sessions import RemoteSessions
    from agent_mux.compare.records import Comparison

Backend = Literal["asyncio", "trio"]
_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")


class BlockingRun(Subscriptions):
    """The handle of a run, with blocking methods. Handlers of events are called in the thread of the event loop.

    Every method corresponds to the method of `RunHandle` with the same name and raises the same errors, also after the
    block of the client: results and events remain, and what needs a working run raises RUN_NOT_ACTIVE.
    """

    def __init__(self, loop: "_Loop", run: Run) -> None:
        self._loop = loop
        self._run = run

    @property
    def run_id(self) -> str:
        """The ULID of the run."""
        return self._run.run_id

    @property
    def state(self) -> RunState:
        """The state of the run."""
        return self._run.state

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, None until it is known."""
        return self._run.session_id

    @property
    def queue_position(self) -> int | None:
        """The position in the queue of waiting runs, from 1; None when the run does not wait."""
        return self._loop.call(lambda: self._run.queue_position)

    @property
    def journal(self) -> str | None:
        """The path of the run's recording, None when there is none."""
        return self._run.journal

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._run.agent} {self.run_id} {self.state}>"

    def _repr_html_(self) -> str:
        """Return the state of the run as HTML for notebooks."""
        return self._run._repr_html_()  # not in the event loop: a run is shown after its client is closed, too

    def __iter__(self) -> Iterator[AgentEvent]:
        """Yield every event of the run, from the first one until the run has ended."""
        events = self._run.events().__aiter__()

        async def next_event() -> AgentEvent | None:
            return await anext(events, None)

        while self._loop.is_open:
            event = self._loop.call(next_event)
            if event is None:
                return
            yield event
        with self._loop.portal() as portal:  # the client was closed: one event loop for the rest
            while (event := portal.call(next_event)) is not None:
                yield event

    def _add_handler(self, event_type: str, handler: Callable[[Any], object], *, once: bool) -> None:
        self._loop.call(lambda: self._run._add_handler(event_type, handler, once=once))  # noqa: SLF001  # a twin of it

    def _remove_handler(self, event_type: str, handler: Callable[[Any], object]) -> None:
        self._loop.call(lambda: self._run._remove_handler(event_type, handler))  # noqa: SLF001  # a twin of it

    def result(self) -> RunResult:
        """Wait until the run has ended and return its result. See `RunHandle.result`."""
        return self._loop.call(self._run.result)

    @property
    def pending(self) -> list[PendingInteraction]:
        """The approvals and questions that the agent waits for now, oldest first."""
        return self._loop.call(lambda: self._run.interaction.pending)

    def respond(self, interaction_id: str, response: Response) -> Delivery:
        """Answer a pending interaction, once. See `InteractionChannel.respond`."""
        return self._loop.call(self._run.interaction.respond, interaction_id, response)

    def approve(self, *, always: bool = False) -> Delivery:
        """Approve the oldest pending approval. See `RunHandle.approve`."""
        return self._loop.call(lambda: self._run.approve(always=always))

    def deny(self, reason: str | None = None) -> Delivery:
        """Deny the oldest pending approval. See `RunHandle.deny`."""
        return self._loop.call(self._run.deny, reason)

    def send(self, text: str) -> Delivery:
        """Send a prompt. See `RunHandle.send`."""
        return self._loop.call(self._run.send, text)

    def queue(self, text: str, when: Boundary = "next-turn") -> Delivery:
        """Send a prompt for a later turn or boundary. See `RunHandle.queue`."""
        return self._loop.call(self._run.queue, text, when)

    def steer(self, text: str) -> Delivery:
        """Send a message into the running turn. See `RunHandle.steer`."""
        return self._loop.call(self._run.steer, text)

    def continue_(self, prompt: str) -> Delivery:
        """Wait until the running turn has ended, then send a prompt. See `RunHandle.continue_`."""
        return self._loop.call(self._run.continue_, prompt)

    def set_model(self, model: str) -> Delivery:
        """Use another model. See `RunHandle.set_model`."""
        return self._loop.call(self._run.set_model, model)

    def set_approval_mode(self, mode: ApprovalMode) -> Delivery:
        """Continue in another approval mode. See `RunHandle.set_approval_mode`."""
        return self._loop.call(self._run.set_approval_mode, mode)

    def interrupt(self) -> Delivery:
        """Stop the agent's current operation. See `RunHandle.interrupt`."""
        return self._loop.call(self._run.interrupt)

    def pause(self) -> Delivery:
        """Stop all processes of the run until `resume`. See `RunHandle.pause`."""
        return self._loop.call(self._run.pause)

    def resume(self) -> Delivery:
        """Continue the processes of a paused run. See `RunHandle.resume`."""
        return self._loop.call(self._run.resume)

    def abort(self) -> Delivery:
        """Abort the run and return when it has ended. See `RunHandle.abort`."""
        return self._loop.call(self._run.abort)

    def close(self) -> Delivery:
        """End the run once the agent has processed all its prompts. See `RunHandle.close`."""
        return self._loop.call(self._run.close)


class _Loop:
    """The event loop of a client, in a thread of its own. What is called after its end gets a loop for the call."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._portal: BlockingPortal | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client is open."""
        return self._portal is not None

    @contextmanager
    def open(self) -> Iterator[BlockingPortal]:
        """Start the loop, and stop it at the end of the block."""
        with start_blocking_portal(self._backend) as portal:
            self._portal = portal
            try:
                yield portal
            finally:
                self._portal = None

    @contextmanager
    def portal(self) -> Iterator[BlockingPortal]:
        """Return the loop of the client while that is open, else a new one."""
        portal = self._portal
        if portal is not None:
            yield portal
            return
        with start_blocking_portal(self._backend) as portal:
            yield portal

    @overload
    def call(self, function: Callable[[Unpack[_Arguments]], Awaitable[_T]], *arguments: *_Arguments) -> _T: ...
    @overload
    def call(self, function: Callable[[Unpack[_Arguments]], _T], *arguments: *_Arguments) -> _T: ...
    def call(self, function: Callable[[Unpack[_Arguments]], Any], *arguments: *_Arguments) -> Any:
        """Call a function in the event loop and wait for its result."""
        with self.portal() as portal:
            return portal.call(function, *arguments)


class _BlockingClient:
    """A client whose event loop runs in a separate thread."""

    def __init__(self, mux: AbstractAsyncContextManager[Any], backend: str) -> None:
        if backend not in get_args(Backend):
            raise ValidationError([FieldError("backend", backend, " or ".join(get_args(Backend)))])
        self._client = mux
        self._loop = _Loop(backend)
        self._managers = ExitStack()

    def __enter__(self) -> Self:
        if self._loop.is_open:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"this {type(self).__name__} is open already; enter it once")
        with ExitStack() as managers:
            portal = managers.enter_context(self._loop.open())
            managers.enter_context(portal.wrap_async_context_manager(self._client))
            self._managers = managers.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._managers.__exit__(kind, error, trace)

    def _start_run(self, start: Callable[[], Awaitable[Run]]) -> BlockingRun:
        async def call_start() -> tuple[Run]:  # in a tuple: a handle is awaitable, and the portal would await its end
            return (await start(),)

        (run,) = self._call(call_start)
        return BlockingRun(self._loop, run)

    def _call(self, function: Callable[[], Awaitable[_T]]) -> _T:
        """Call a coroutine function in the event loop and wait for its result. Raises RUN_NOT_ACTIVE outside."""
        if not self._loop.is_open:
            kind = type(self).__name__
            raise AgentMuxError("RUN_NOT_ACTIVE", f"{kind} is not open; call this inside of `with {kind}() as mux:`")
        return self._loop.call(function)


class BlockingAgentMux(_BlockingClient, Namespaces):
    """An `AgentMux` for scripts: a context manager with blocking methods. Leaving the block aborts active runs."""

    def __init__(self, *, backend: Backend = "asyncio", **arguments: Unpack[AgentMuxArguments]) -> None:
        """Create a client with the arguments of `AgentMux`. `backend` is the event loop: `asyncio` or `trio`."""
        self._mux = AgentMux(**arguments)
        super().__init__(self._mux, backend)
        self.adapters = self._mux.adapters
        self._config_dir = self._mux._config_dir  # noqa: SLF001  # this class wraps that client

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with each run that starts from now on. See `AgentMux.on_run`."""
        return self._mux.on_run(observer)

    @property
    def profiles(self) -> Profiles:
        """The named sets of run options. See `AgentMux.profiles`."""
        return self._mux.profiles

    def resolve_options(
        self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]
    ) -> ResolvedOptions:
        """Return the options that `run` would use, and the source of each. See `AgentMux.resolve_options`."""
        return self._mux.resolve_options(options, **fields)

    def settled(self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]) -> ResolvedOptions:
        """Return `resolve_options(...)`. Deprecated: use that name."""
        warnings.warn("`settled` is deprecated; use `resolve_options`", DeprecationWarning, stacklevel=2)
        return self._mux.resolve_options(options, **fields)

    def run(
        self,
        options: RunOptions | ResolvedOptions | None = None,
        /,
        *,
        owner: str = "",
        **fields: Unpack[RunOptionFields],
    ) -> BlockingRun:
        """Start a run and return its handle at once. Arguments and errors are those of `AgentMux.run`.

        Raises RUN_NOT_ACTIVE outside of the client's `with` block.
        """
        return self._start_run(lambda: self._mux.start(options, owner=owner, **fields))

    def attach(self, run: str | None = None, /, **fields: Any) -> BlockingRun:
        """Return a handle of a run of this machine, in whatever process it works. See `AgentMux.attach`."""
        return self._start_run(lambda: self._mux.attach(run, **fields))

    def compare(
        self, prompt: str, /, *, candidates: "Sequence[CandidateLike]", **rules: "Unpack[ComparisonFields]"
    ) -> "Comparison":
        """Run several candidates on one task and wait for the results. See `AgentMux.compare`."""

        async def carry_out() -> "Comparison":
            return await (await self._mux.compare(prompt, candidates=candidates, **rules)).result()

        return self._call(carry_out)

    def resume_comparison(
        self,
        comparison: str | None = None,
        /,
        *,
        env: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> "Comparison":
        """Run the trials that a comparison has left and wait for the results. See `AgentMux.resume_comparison`."""

        async def carry_out() -> "Comparison":
            return await (await self._mux.resume_comparison(comparison, env=env, options=options)).result()

        return self._call(carry_out)


class BlockingRemoteMux(_BlockingClient):
    """A `RemoteMux` for scripts: a context manager with blocking methods. Leaving the block aborts runs it started."""

    def __init__(
        self, url: str | None = None, *, backend: Backend = "asyncio", **arguments: Unpack[RemoteMuxArguments]
    ) -> None:
        """Create a client with the arguments of `RemoteMux`. `backend` is the event loop: `asyncio` or `trio`."""
        from agent_mux.client.remote import RemoteMux  # noqa: PLC0415  # it needs an extra

        self._mux = RemoteMux(url, **arguments)
        super().__init__(self._mux, backend)

    def run(self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]) -> BlockingRun:
        """Start a run and return its handle once the service has accepted it. See `RemoteMux.start`.

        Raises RUN_NOT_ACTIVE outside of the client's `with` block.
        """
        return self._start_run(lambda: self._mux.start(options, **fields))

    def attach(self, run_id: str, /, **fields: Unpack[AttachOptions]) -> BlockingRun:
        """Return a handle of any run of the service, by its id. See `RemoteMux.attach`."""
        return self._start_run(lambda: self._mux.attach(run_id, **fields))

    def compare(
        self, prompt: str, /, *, candidates: "Sequence[CandidateLike]", **rules: "Unpack[ComparisonFields]"
    ) -> "Comparison":
        """Run several candidates on one task at the service and wait for the results. See `RemoteMux.compare`."""

        async def carry_out() -> "Comparison":
            return await (await self._mux.compare(prompt, candidates=candidates, **rules)).result()

        return self._call(carry_out)

    def resume_comparison(
        self, comparison: str | None = None, /, *, env: Mapping[str, str] | None = None
    ) -> "Comparison":
        """Run the trials that a comparison has left and wait for the results. See `RemoteMux.resume_comparison`."""

        async def carry_out() -> "Comparison":
            return await (await self._mux.resume_comparison(comparison, env=env)).result()

        return self._call(carry_out)

    @property
    def comparisons(self) -> "RemoteComparisons":
        """The comparisons that the service has stored. See `RemoteMux.comparisons`."""
        return self._mux.comparisons

    @property
    def sessions(self) -> "RemoteSessions":
        """The sessions that agents have stored on the service's machine. See `RemoteMux.sessions`."""
        return self._mux.sessions

    @property
    def runs(self) -> "RemoteRuns":
        """The runs that the service has stored. See `RemoteMux.runs`."""
        return self._mux.runs

    @property
    def models(self) -> "RemoteModels":
        """The service's model registry. See `RemoteMux.models`."""
        return self._mux.models

    @property
    def profiles(self) -> "RemoteProfiles":
        """The named sets of run options of the service. See `RemoteMux.profiles`."""
        return self._mux.profiles

    @property
    def adapters(self) -> "RemoteAdapters":
        """The agents that the service can run. See `RemoteMux.adapters`."""
        return self._mux.adapters
