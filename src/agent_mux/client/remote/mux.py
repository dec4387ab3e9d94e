"""The client of a service: the interface of `AgentMux`, and runs that work elsewhere."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
from ulid import ULID

from agent_mux._util.logs import LOGGER
from agent_mux.client.defaults import SENT, checked_defaults
from agent_mux.client.observers import Observers, tell_of_end
from agent_mux.client.remote.connection import Address, Line, decoded
from agent_mux.client.remote.namespaces import RemoteNamespaces
from agent_mux.client.remote.run import RemoteRun
from agent_mux.client.remote.snapshot import Snapshot
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.options import RUN_ID, RunOptions, validate_options
from agent_mux.settings.layers import MERGED_FIELDS, fields_from_keywords, fields_from_options
from agent_mux.settings.requests import request_to_json

Observer = Callable[[RemoteRun], Callable[[], None]]
"""Is told of a run, and returns what is to be called at its end."""
REQUEST_TIMEOUT = 30.0  # seconds
RECONNECT_FOR = 60.0  # seconds

_HERE = ("on_approval_request", "on_input_required", "collect_events", "event_buffer_size")
"""Options that mean something to this end, too."""
_ELSEWHERE = frozenset({"auth", "config", "hooks", "mcp", "places", "plugins", "settled", "skills", "subagents"})
"""What `AgentMux` has besides."""


class RemoteMux(RemoteNamespaces):
    """Starts runs at a service and ends them: leaving the block aborts those that it started and that still run.

    Making a client does no I/O. When the process of a client dies, its runs go on: that is what a service is for.
    """

    def __init__(  # noqa: PLR0913  # one for each thing that only a client has
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        default_agent: str | None = None,
        default_model: str | None = None,
        request_timeout: float = REQUEST_TIMEOUT,
        reconnect_for: float = RECONNECT_FOR,
        **defaults: Any,
    ) -> None:
        """Take the defaults for every run.

        Args:
            url: Of the service; else `$AGENT_MUX_SERVER`.
            token: What the service knows the caller by; else `$AGENT_MUX_SERVER_TOKEN`.
            default_agent: The agent of runs that name none.
            default_model: The model of runs that name none.
            request_timeout: Seconds for an answer.
            reconnect_for: Seconds without any sign of the service until its runs are given up.
            **defaults: `approval_mode`, `timeout`, `inactivity_timeout` (seconds), `stream`, `debug`,
                `event_buffer_size`, `retry_policy`, `hooks`: as in `RunOptions`. They are sent with each run, and go
                before profiles and files of the service.

        Raises:
            ValidationError: No URL, or a default that is unknown or out of range.
        """
        said = fields_from_keywords(checked_defaults(defaults, SENT))
        self._defaults = {**said, **fields_from_keywords({"agent": default_agent, "model": default_model})}
        self._line = Line(Address.of(url, token), request_timeout)
        self._reconnect_for = reconnect_for
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_leaving = False
        self._live: dict[RemoteRun, anyio.CancelScope] = {}
        self._mine: set[RemoteRun] = set()
        self._observers: Observers[RemoteRun] = Observers()

    @property
    def url(self) -> str:
        """Of the service."""
        return self._line.address.url

    def __getattr__(self, name: str) -> Any:
        """Say what is not here, and where it is."""
        if name in _ELSEWHERE:
            where = f"`AgentMux.{name}` is about the machine that it is used on; ask on the machine of the service"
            raise AttributeError(f"RemoteMux has no {name}: {where}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def __aenter__(self) -> Self:
        await self._line.open()
        self._tasks, self._is_leaving = anyio.create_task_group(), False
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        tasks, self._is_leaving = self._tasks, True
        assert tasks is not None  # noqa: S101  # __aenter__ made it
        try:
            with anyio.CancelScope(shield=True):
                await self._end_runs()
            self._tasks = None
            tasks.cancel_scope.cancel()
            return await tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if group.exceptions != (error,):
                raise
            return False  # what the block raised goes on as it was, not as a group of one
        finally:
            with anyio.CancelScope(shield=True):
                await self._line.close()

    async def _end_runs(self) -> None:
        """Those that are ours are aborted; the others go on without us."""
        async with anyio.create_task_group() as ending:
            for run in list(self._live):
                if run in self._mine:
                    ending.start_soon(self._end, run)
        for scope in list(self._live.values()):
            scope.cancel()

    @staticmethod
    async def _end(run: RemoteRun) -> None:
        try:
            await run.abort()
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("run %s may go on: %s", run.run_id, error)

    # -- starting

    def run(self, options: RunOptions | None = None, /, **fields: Any) -> RemoteRun:
        """Start a run and return at once: when the service has answered, which the event loop waits for.

        `start` does the same without holding up the event loop.

        Args:
            options: The options, or give them one by one as keywords. As `AgentMux.run`; paths are those of the
                machine of the service, where `cwd` has to be said, unless its own directory will do.
            **fields: Fields of `RunOptions`.

        Raises:
            ValidationError: Options that cannot work, every bad field named; also those that cannot be sent.
            CapabilityError: The agent cannot do what was asked.
            AgentMuxError: As `AgentMux.run`; UNAVAILABLE when the service cannot be reached, UNAUTHENTICATED and
                FORBIDDEN.
        """
        told, here = self._request(options, fields)
        return self._begin(self._line.ask_blocking("POST", "/v1/runs", told, key=str(ULID())), here)

    async def start(self, options: RunOptions | None = None, /, **fields: Any) -> RemoteRun:
        """As `run`, while the event loop does other things."""
        told, here = self._request(options, fields)
        return self._begin(await self._line.ask("POST", "/v1/runs", told, key=str(ULID())), here)

    async def attach(self, run_id: str, /, **fields: Any) -> RemoteRun:
        """A run of the service, whoever started it. It is not ended when the block is left.

        `fields`: `on_approval_request`, `on_input_required`, `collect_events`, `event_buffer_size`. Raises
        RUN_NOT_FOUND, and as `start`.
        """
        unknown = [FieldError(name, fields[name], ", ".join(_HERE)) for name in fields if name not in _HERE]
        if not RUN_ID.fullmatch(run_id):
            unknown.append(FieldError("run_id", run_id, "a ULID (26 characters)"))
        if unknown:
            raise ValidationError(unknown)
        self._require_open()
        answer = await self._line.ask("GET", f"/v1/runs/{run_id}", again=True)
        return self._begin(answer, _options_here(fields), mine=False)

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with each run that is started from now on, before anything is heard of it.

        As `AgentMux.on_run`.
        """
        return self._observers.add(observer)

    def _request(self, options: RunOptions | None, fields: Mapping[str, Any]) -> tuple[dict[str, Any], RunOptions]:
        """What is sent, and what is kept here."""
        self._require_open()
        if options is not None and fields:
            raise TypeError("give either RunOptions or keywords, not both")
        said = _merged(
            fields_from_options(options) if options is not None else fields_from_keywords(fields), self._defaults
        )
        if said.pop("journal", True) is not True:
            raise ValidationError([FieldError("journal", False, "True: a service keeps the recordings of its runs")])
        here = {name: said[name] for name in _HERE if name in said}
        said.pop("collect_events", None)
        return request_to_json(said), _options_here(here)

    def _require_open(self) -> None:
        if self._tasks is None or self._is_leaving:
            raise AgentMuxError("RUN_NOT_ACTIVE", "start runs inside of `async with RemoteMux() as mux:`")

    def _begin(self, answer: bytes, options: RunOptions, *, mine: bool = True) -> RemoteRun:
        snapshot: Snapshot = decoded(answer, Snapshot)
        run = RemoteRun(self._line, snapshot, options, patience=self._reconnect_for, spawn=self._spawn)
        endings = self._observers.tell(run, run.warn) if mine else []
        self._live[run] = scope = anyio.CancelScope(shield=True)
        if mine:
            self._mine.add(run)
        assert self._tasks is not None  # noqa: S101  # it was looked at before
        self._tasks.start_soon(self._follow, run, scope, endings, name=f"run {run.run_id}")
        return run

    def _spawn(self, function: Callable[[], Any]) -> None:
        if self._tasks is None:
            raise AgentMuxError("UNAVAILABLE", "the client is closed")
        self._tasks.start_soon(function)

    async def _follow(self, run: RemoteRun, scope: anyio.CancelScope, endings: Sequence[Callable[[], None]]) -> None:
        # Whoever cancels the client wants its runs to be ended, which has to be seen.
        try:
            with scope:
                await run.live()
        finally:
            del self._live[run]
            self._mine.discard(run)
            tell_of_end(endings, run.run_id)


def _merged(said: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    made = {**defaults, **said}
    for name in MERGED_FIELDS & said.keys() & defaults.keys():
        made[name] = {**defaults[name], **said[name]}
    return made


def _options_here(fields: Mapping[str, Any]) -> RunOptions:
    """With callbacks and sizes; whatever else is decided is decided by the service."""
    options = RunOptions(agent="-", prompt="-", approval_mode="prompt", **fields)
    validate_options(options)
    return options
