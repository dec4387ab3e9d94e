"""The client of a service: the interface of `AgentMux`, with runs that work on the service's machine."""

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux._util.ulids import new_ulid
from agent_mux.client.arguments import RemoteMuxArguments
from agent_mux.client.base import REMOTE_DEFAULTS, Observers, notify_end, validate_defaults
from agent_mux.client.opening import Openable
from agent_mux.client.remote.address import Address
from agent_mux.client.remote.connection import ServiceConnection
from agent_mux.client.remote.lazy_httpx import require_httpx
from agent_mux.client.remote.namespaces import RemoteNamespaces
from agent_mux.client.remote.protocol import Snapshot
from agent_mux.client.remote.responses import decode_response
from agent_mux.client.remote.run import RemoteRun
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.sdk.checked_values import check_arguments
from agent_mux.sdk.option_fields import AttachOptions, RemoteDefaults, RunOptionFields
from agent_mux.sdk.options import RUN_ID, RunOptions, validate_options
from agent_mux.sdk.plain_options import typed_options
from agent_mux.settings.layers import MERGED_FIELDS, fields_from_keywords, fields_from_options
from agent_mux.settings.requests import request_to_json

if TYPE_CHECKING:
    from agent_mux.client.comparisons import CandidateLike, ComparisonFields
    from agent_mux.client.remote.comparison import RemoteComparison

Observer = Callable[[RemoteRun], Callable[[], None]]
"""A function that is called with each new run. It returns a function that is called when that run has ended."""
REQUEST_TIMEOUT = 30.0  # seconds
RECONNECT_FOR = 60.0  # seconds

_CLIENT_OPTIONS = tuple(AttachOptions.__annotations__)
"""Fields of `RunOptions` that the client itself uses."""
_LOCAL_ONLY = frozenset({
    "auth", "concurrency", "config", "hooks", "installer", "mcp", "plan", "plugins", "resolve_options", "settled",
    "skills", "subagents",
})  # fmt: skip
"""Attributes of `AgentMux` that a remote client does not have."""


class RemoteMux(RemoteNamespaces, Openable):
    """A client that starts runs at a service (`amux serve`), over HTTP.

    Use it as an asynchronous context manager: leaving the block aborts every active run that this client started.
    Creating a client performs no I/O. If the client's process dies, its runs continue at the service.

    Example:
        async with RemoteMux("http://localhost:8642") as mux:
            result = await mux.run(
                agent="claude", prompt="fix the failing test", approval_mode="yolo", cwd="/work/project"
            )
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
        **defaults: Unpack[RemoteDefaults],
    ) -> None:
        """Create a client.

        Args:
            url: The URL of the service. Default: `$AGENT_MUX_SERVER`.
            token: The bearer token of the caller. Default: `$AGENT_MUX_SERVER_TOKEN`.
            default_agent: The agent of runs that name none.
            default_model: The model of runs that name none.
            request_timeout: Seconds to wait for the complete answer to a request, retries included. Files, diffs and
                recordings may take longer while they arrive.
            reconnect_for: Seconds without any bytes from the service after which its runs are given up.
            **defaults: Default options of every run, as in `RunOptions`: `approval_mode`, `timeout`,
                `inactivity_timeout` (seconds), `stream`, `debug`, `event_buffer_size`, `max_text_bytes`,
                `retry_policy`, `hooks`. They are sent with each run and override profiles and configuration files of
                the service.

        Raises:
            ValidationError: The URL is missing or invalid, or a default is unknown or out of range.
            MissingExtraError: UNAVAILABLE; the extra `remote` is not installed.
        """
        require_httpx()
        own = {"token": token, "default_agent": default_agent, "default_model": default_model,
               "request_timeout": request_timeout, "reconnect_for": reconnect_for}  # fmt: skip
        check_arguments(own, RemoteMuxArguments)
        given = fields_from_keywords(validate_defaults(defaults, REMOTE_DEFAULTS, RemoteMuxArguments.__annotations__))
        self._defaults = {**given, **fields_from_keywords({"agent": default_agent, "model": default_model})}
        self._connection = ServiceConnection(Address.of(url, token), request_timeout)
        self._reconnect_for = reconnect_for
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_leaving = False
        self._live: dict[RemoteRun, anyio.CancelScope] = {}
        self._own: set[RemoteRun] = set()
        self._own_comparisons: list[RemoteComparison] = []
        self._observers: Observers[RemoteRun] = Observers()

    @property
    def url(self) -> str:
        """The URL of the service, without a trailing slash."""
        return self._connection.address.url

    def __getattr__(self, name: str) -> Any:
        """Raise an `AttributeError` that explains where an attribute of `AgentMux` is available."""
        if name in _LOCAL_ONLY:
            hint = f"`AgentMux.{name}` concerns the local machine; use it on the machine of the service"
            raise AttributeError(f"RemoteMux has no {name}: {hint}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def __aenter__(self) -> Self:
        await self._connection.open()
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
            return False  # re-raise what the block raised without wrapping it in a group
        finally:
            with anyio.CancelScope(shield=True):
                await self._connection.close()

    async def _end_runs(self) -> None:
        """Abort the runs that this client started and stop following the others."""
        async with anyio.create_task_group() as aborting:
            for run in list(self._live):
                if run in self._own:
                    aborting.start_soon(self._abort, run)
            for comparison in self._own_comparisons:
                if not (comparison.is_over or comparison.is_detached):
                    aborting.start_soon(self._stop, comparison)
        for scope in list(self._live.values()):
            scope.cancel()

    @staticmethod
    async def _abort(run: RemoteRun) -> None:
        try:
            await run.abort()
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("run %s may still be active: %s", run.run_id, error)

    @staticmethod
    async def _stop(comparison: "RemoteComparison") -> None:
        try:
            await comparison.stop()
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("comparison %s may still be active: %s", comparison.id, error)

    # -- starting

    def run(self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]) -> RemoteRun:
        """Start a run and return its handle once the service has accepted it. Blocks the event loop meanwhile.

        `start` does the same without blocking the event loop.

        Args:
            options: All options of the run, instead of keywords; see `AgentMux.run`. Paths are those of the service's
                machine. Give `cwd`, unless the service's own working directory is the right one.
            **fields: Fields of `RunOptions`.

        Raises:
            ValidationError: Options are invalid or cannot be sent; the error names every invalid field.
            CapabilityError: The agent does not support a requested option.
            AgentMuxError: Those of `AgentMux.run`; UNAVAILABLE when the service cannot be reached; UNAUTHENTICATED or
                FORBIDDEN when the token is missing, invalid or not sufficient.
            TypeError: Both `options` and `fields` are given.
        """
        request, client_options = self._build_request(options, fields)
        body = self._connection.request_blocking("POST", "/v1/runs", request, key=new_ulid())
        return self._create_handle(body, client_options)

    async def start(self, options: RunOptions | None = None, /, **fields: Unpack[RunOptionFields]) -> RemoteRun:
        """Start a run and return its handle once the service has accepted it. See `run`."""
        request, client_options = self._build_request(options, fields)
        body = await self._connection.request("POST", "/v1/runs", request, key=new_ulid())
        return self._create_handle(body, client_options)

    async def attach(self, run_id: str, /, **fields: Unpack[AttachOptions]) -> RemoteRun:
        """Return a handle of a run of the service that any client may have started. Leaving the block keeps it running.

        Args:
            run_id: The ULID of the run.
            **fields: `on_approval_request`, `on_input_required`, `collect_events`, `event_buffer_size`, as in
                `RunOptions`.

        Raises:
            ValidationError: `run_id` is not a ULID, or a field is unknown or out of range.
            AgentMuxError: RUN_NOT_FOUND; those of `start` for the connection.
        """
        allowed = ", ".join(_CLIENT_OPTIONS)
        unknown = [FieldError(name, value, allowed) for name, value in fields.items() if name not in _CLIENT_OPTIONS]
        if not RUN_ID.fullmatch(run_id):
            unknown.append(FieldError("run_id", run_id, "a ULID (26 characters)"))
        if unknown:
            raise ValidationError(unknown)
        self._require_open()
        body = await self._connection.request("GET", f"/v1/runs/{run_id}", is_idempotent=True)
        return self._create_handle(body, _client_options(fields), is_own=False)

    async def compare(
        self, prompt: str, /, *, candidates: "Sequence[CandidateLike]", **rules: "Unpack[ComparisonFields]"
    ) -> "RemoteComparison":
        """Run several candidates on one task at the service, and judge them with checks. See `AgentMux.compare`.

        Paths are those of the service's machine, inside its roots. Leaving the client's block stops the comparison,
        unless its `detach` was called; it can be resumed.

        Raises:
            ValidationError: A candidate, a check or a rule is invalid, or names a path outside of the roots.
            AgentMuxError: Those of `AgentMux.compare` and of `start`.
        """
        from agent_mux.client.remote.comparison import comparison_body  # noqa: PLC0415  # most programs compare nothing

        self._require_open()
        body = await self._connection.request(
            "POST", "/v1/comparisons", comparison_body(prompt, candidates, rules), key=new_ulid()
        )
        return self._own_comparison(body)

    async def resume_comparison(
        self, comparison: str | None = None, /, *, env: Mapping[str, str] | None = None
    ) -> "RemoteComparison":
        """Run the trials that a comparison of the service has left. See `AgentMux.resume_comparison`."""
        self._require_open()
        name = await to_thread.run_sync(self.comparisons.id_of, comparison)
        body = await self._connection.request("POST", f"/v1/comparisons/{name}/resume", {"env": dict(env or {})})
        return self._own_comparison(body)

    async def attach_comparison(self, comparison: str | None = None, /) -> "RemoteComparison":
        """Return a handle of a comparison that any client may have started. Leaving the block keeps it active.

        `comparison`: its id, or the beginning of it; default: the latest one.

        Raises:
            AgentMuxError: NOT_FOUND; those of `start` for the connection.
        """
        self._require_open()
        found = self._comparison(await to_thread.run_sync(self.comparisons.id_of, comparison))
        await found.comparison()
        return found

    def _own_comparison(self, body: bytes) -> "RemoteComparison":
        from agent_mux.client.remote.comparison import StoredView  # noqa: PLC0415  # most programs compare nothing

        view: StoredView = decode_response(body, StoredView)
        comparison = self._comparison(view.id)
        self._own_comparisons.append(comparison)
        return comparison

    def _comparison(self, name: str) -> "RemoteComparison":
        from agent_mux.client.remote.comparison import RemoteComparison  # noqa: PLC0415  # most programs compare nothing

        return RemoteComparison(self._connection, name, reconnect_for=self._reconnect_for, spawn=self._spawn)

    def on_run(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with the handle of each run that this client starts from now on, before its first event.

        See `AgentMux.on_run`.
        """
        return self._observers.add(observer)

    def _build_request(
        self, options: RunOptions | None, fields: Mapping[str, Any]
    ) -> tuple[dict[str, Any], RunOptions]:
        """Return the body of the request, and the options that the client itself uses."""
        self._require_open()
        if options is not None and fields:
            raise TypeError("give either RunOptions or keywords, not both")
        given = _merge_defaults(
            fields_from_options(options) if options is not None else fields_from_keywords(fields), self._defaults
        )
        if given.pop("journal", True) is not True:
            raise ValidationError([FieldError("journal", False, "True: a service always records its runs")])
        functions = next((name for name in ("tools", "hooks") if isinstance(given.get(name), Sequence | Mapping)), None)
        if functions is not None and given[functions]:
            hint = "functions cannot be sent: use AgentMux, or an MCP server that the machine of the service reaches"
            raise CapabilityError("a service", f"functions in the option `{functions}`", hint=hint)
        client_fields = {name: given[name] for name in _CLIENT_OPTIONS if name in given}
        given.pop("collect_events", None)
        return request_to_json(given), _client_options(client_fields)

    def _require_open(self) -> None:
        if self._tasks is None or self._is_leaving:
            raise AgentMuxError("RUN_NOT_ACTIVE", "start runs inside of `async with RemoteMux() as mux:`")

    def _create_handle(self, body: bytes, options: RunOptions, *, is_own: bool = True) -> RemoteRun:
        snapshot: Snapshot = decode_response(body, Snapshot)
        run = RemoteRun(self._connection, snapshot, options, reconnect_for=self._reconnect_for, spawn=self._spawn)
        on_end = self._observers.notify_start(run, run.warn) if is_own else []
        self._live[run] = scope = anyio.CancelScope(shield=True)
        if is_own:
            self._own.add(run)
        assert self._tasks is not None  # noqa: S101  # the caller checked it
        self._tasks.start_soon(self._follow, run, scope, on_end, name=f"run {run.run_id}")
        return run

    def _spawn(self, function: Callable[[], Any]) -> None:
        if self._tasks is None:
            raise AgentMuxError("UNAVAILABLE", "the client is closed")
        self._tasks.start_soon(function)

    async def _follow(self, run: RemoteRun, scope: anyio.CancelScope, on_end: Sequence[Callable[[], None]]) -> None:
        # The scope is shielded: when the client is cancelled, it still has to receive the end of the runs it aborts.
        try:
            with scope:
                await run.follow()
        finally:
            del self._live[run]
            self._own.discard(run)
            notify_end(on_end, run.run_id)


def _merge_defaults(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **given}
    for name in MERGED_FIELDS & given.keys() & defaults.keys():
        merged[name] = {**defaults[name], **given[name]}
    return merged


def _client_options(fields: Mapping[str, Any]) -> RunOptions:
    """Return validated options with the fields that the client uses; the service applies the other options."""
    options = RunOptions(agent="-", prompt="-", approval_mode="prompt", **typed_options(fields))
    validate_options(options)
    return options
