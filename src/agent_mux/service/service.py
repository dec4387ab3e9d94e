"""The service without HTTP: everything that the routes use, opened and closed in the right order.

One process serves a directory, under the instance id of `instance.py`.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux.agents.detection import DetectedAgent, Detector
from agent_mux.client import AgentMux
from agent_mux.run.derivation import codec_factory
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.audit.entries import RETENTION
from agent_mux.service.audit.spool import AuditSpool
from agent_mux.service.audit.trail import AuditTrail
from agent_mux.service.comparisons.registry import ComparisonRegistry
from agent_mux.service.comparisons.retention import ComparisonRetention
from agent_mux.service.comparisons.streaming import ComparisonStreams
from agent_mux.service.earlier_database import EarlierDatabase
from agent_mux.service.instance import ServiceInstance, exclusive_instance
from agent_mux.service.known_secrets import KnownSecrets
from agent_mux.service.metrics import LiveState, Metrics
from agent_mux.service.owner import Owner
from agent_mux.service.readiness import Readiness
from agent_mux.service.retention import Retention, sweep_regularly
from agent_mux.service.runs.copies import take_over_copy
from agent_mux.service.runs.event_cache import EncodedEventCache
from agent_mux.service.runs.live import RunLifecycleObserver
from agent_mux.service.runs.recovery import Recovery
from agent_mux.service.runs.registry import RunRegistry
from agent_mux.service.runs.starter import RunStarter
from agent_mux.service.runs.streaming import RunStreams
from agent_mux.service.runs.write_behind import WriteBehindQueue
from agent_mux.service.security.authenticator import Authenticator
from agent_mux.service.security.rate_limits import RateLimiter
from agent_mux.service.security.tokens import RateLimits
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.audit import AuditStore
from agent_mux.service.store.database import Database, checked_url
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunStore
from agent_mux.service.store.tokens import TokenStore
from agent_mux.service.store.webhooks import WebhookStore
from agent_mux.service.webhooks.manager import WebhookManager
from agent_mux.settings.allowed_directories import AllowedDirectories

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")
DATABASE_FILE = "service.db"
MAX_READERS = 4
"""Maximum number of requests that read the agents' files at a time."""


class SharedDetection:
    """Detection of installed agents for concurrent requests, which share one pass."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._lock = anyio.Lock()
        self._detected_at = float("-inf")

    async def all(self, *, fresh: bool = False) -> Mapping[str, DetectedAgent]:
        """Return every agent by name. `fresh`: detect again instead of using results from before this call."""
        requested_at = time.monotonic()
        async with self._lock:
            if fresh and self._detected_at < requested_at:
                self._detector.forget()
                self._detected_at = time.monotonic()
            return {found.agent: found for found in await self._detector.detect_all()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts of one open service."""

    settings: ServiceSettings
    instance: str
    roots: AllowedDirectories
    """Directories in which it may start runs and change sessions."""
    readiness: Readiness
    mux: AgentMux
    database: Database
    runs: RunRegistry
    starter: RunStarter
    streams: RunStreams
    authenticator: Authenticator
    event_cache: EncodedEventCache
    comparisons: ComparisonRegistry
    comparison_streams: ComparisonStreams
    metrics: Metrics
    webhooks: WebhookManager
    detection: SharedDetection
    secrets: KnownSecrets
    audit: AuditTrail
    limiter: RateLimiter
    readers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MAX_READERS))


def _database_of(settings: ServiceSettings) -> Database:
    return Database(checked_url(settings.database, settings.directory / DATABASE_FILE), settings.directory)


@asynccontextmanager
async def open_database(settings: ServiceSettings) -> AsyncIterator[Database]:
    """Open the database that a service with these settings uses, whether that service runs or not.

    Raises CONFIG_ERROR.
    """
    database = _database_of(settings)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _checked_database(
    settings: ServiceSettings, instance: ServiceInstance
) -> AsyncIterator[tuple[Database, Authenticator]]:
    """Open the database if it is the one that the directory was used with, and has its tokens. Raises CONFIG_ERROR."""
    earlier = EarlierDatabase(instance, settings.config_dir / "runs", may_be_new=settings.new_database)
    database = _database_of(settings)
    authenticator = Authenticator(TokenStore(database), settings)
    if database.is_missing:  # refuse before it is created: a backup that is restored must not meet files of another
        authenticator.require_marked_tokens()
        earlier.require_file(database)
    await database.open()
    try:
        await authenticator.open()
        await earlier.require_row(database)
        await to_thread.run_sync(earlier.record, database)
        yield database, authenticator
    finally:
        await database.close()


@asynccontextmanager
async def open_service(
    settings: ServiceSettings, adapters: AdapterRegistry | None = None, metrics: Metrics | None = None
) -> AsyncIterator[Service]:
    """Open a service. Leaving the block aborts its runs and stores their outcomes.

    Args:
        settings: Options of the service.
        adapters: The agents to offer; None: all registered ones.
        metrics: Where it counts; None: metrics of its own.

    Raises:
        AgentMuxError: CONFIG_ERROR when another server uses the directory, or the database cannot be used.
    """
    metrics = metrics or Metrics()
    roots = AllowedDirectories(settings.roots or (Path.cwd(),))
    _database_of(settings)  # reject an invalid URL before anything is written
    with exclusive_instance(settings.directory) as instance:
        async with _checked_database(settings, instance) as (database, authenticator):
            own = InstanceRow(database, instance.instance_id, Owner.of_process(instance.place))
            await own.take()
            async with (
                AgentMux(
                    config_dir=settings.config_dir,
                    adapters=adapters,
                    base_dir=roots.default,
                    max_concurrent_runs=settings.max_concurrent_runs,
                    max_concurrent_runs_per_agent=settings.max_concurrent_runs_per_agent or None,
                    queue_limit=settings.queue_limit,
                    control_sockets=False,  # they would bypass tokens, rate limits and the audit trail
                ) as mux,
                anyio.create_task_group() as tasks,
            ):
                await take_over_copy(instance, own, mux.journals, codec_factory(mux.adapters))
                webhooks = WebhookManager(
                    WebhookStore(own), tasks, metrics, allow_private=settings.allow_private_webhooks
                )
                await webhooks.open()
                audit = await _open_audit(settings, database, instance.instance_id, tasks)
                store = RunStore(own)
                secrets = KnownSecrets()
                observers = (metrics, webhooks)
                runs, starter, streams, recovery = await _open_runs(
                    mux, store, own, tasks, roots, secrets, audit, observers
                )
                authenticator.start(tasks)
                expired = audit.recording(RETENTION, "run.delete", "run")
                retention = Retention.from_settings(settings, store, partial(runs.delete_many, recording=expired))
                comparisons = ComparisonRegistry(
                    mux, settings.directory, tasks, roots, secrets, audit, starter.require_accepting, metrics
                )
                metrics.life = LiveState(
                    lambda: runs.alive, lambda: mux.concurrency.waiting, lambda: len(comparisons.active)
                )
                of_comparisons = ComparisonRetention(
                    registry=comparisons, keep_ms=retention.keep_ms, keep_count=settings.keep_comparisons
                )
                for one in (retention, of_comparisons):
                    if one.is_enabled:
                        tasks.start_soon(sweep_regularly, one.sweep, recovery.finished.wait)
                event_cache = EncodedEventCache()
                make_codec = codec_factory(mux.adapters)
                tasks.start_soon(own.run, partial(_give_up, webhooks, starter, comparisons))
                try:
                    yield Service(
                        settings=settings,
                        instance=instance.instance_id,
                        roots=roots,
                        readiness=Readiness(own, mux.journals),
                        mux=mux,
                        database=database,
                        runs=runs,
                        starter=starter,
                        streams=streams,
                        authenticator=authenticator,
                        event_cache=event_cache,
                        comparisons=comparisons,
                        comparison_streams=ComparisonStreams(comparisons, make_codec, event_cache, secrets),
                        metrics=metrics,
                        webhooks=webhooks,
                        detection=SharedDetection(mux.detector),
                        secrets=secrets,
                        audit=audit,
                        limiter=RateLimiter(RateLimits(settings.requests_per_minute, settings.runs_per_minute)),
                    )
                finally:
                    with anyio.CancelScope(shield=True):
                        async with anyio.create_task_group() as closing:
                            closing.start_soon(starter.close)
                            closing.start_soon(comparisons.close)
                        await audit.close()
                    metrics.life = None
                    tasks.cancel_scope.cancel()


async def _give_up(webhooks: WebhookManager, starter: RunStarter, comparisons: ComparisonRegistry, reason: str) -> None:
    """Stop, because another server has taken over the rows of this one."""
    webhooks.stop()
    comparisons.stop_all()
    await starter.give_up(reason)


async def _open_audit(
    settings: ServiceSettings, database: Database, instance: str, tasks: anyio.abc.TaskGroup
) -> AuditTrail:
    audit = AuditTrail(
        AuditStore(database, instance), AuditSpool(settings.directory), instance, keep_days=settings.keep_audit_days
    )
    await audit.open()
    tasks.start_soon(audit.run)
    return audit


async def _open_runs(  # noqa: PLR0913, PLR0917  # the parts that it connects
    mux: AgentMux,
    store: RunStore,
    own: InstanceRow,
    tasks: anyio.abc.TaskGroup,
    roots: AllowedDirectories,
    secrets: KnownSecrets,
    audit: AuditTrail,
    observers: Sequence[RunLifecycleObserver],
) -> tuple[RunRegistry, RunStarter, RunStreams, Recovery]:
    """Clean up after the runs of a killed server and start queued ones again.

    The outcomes of interrupted runs are recovered in the background. Raises UNAVAILABLE without a database.
    """
    make_codec = codec_factory(mux.adapters)
    write_queue = WriteBehindQueue(store)
    recovery = Recovery(mux.journals, make_codec, write_queue, observers, own.owner)
    registry = RunRegistry(store, write_queue, mux.journals, recovery.wait_recovered)
    starter = RunStarter(mux, registry, tasks, roots, secrets, audit, observers=observers)
    rows = await store.unfinished()
    tasks.start_soon(write_queue.run)
    await recovery.begin(rows, starter.restart)
    tasks.start_soon(recovery.run)
    starter.open()
    return registry, starter, RunStreams(registry, make_codec), recovery


async def in_thread(
    service: Service, call: Callable[_Arguments, _Result], *arguments: _Arguments.args, **more: _Arguments.kwargs
) -> _Result:
    """Run a call that reads files in a thread. Their number is limited, so that they do not delay runs."""
    return await to_thread.run_sync(lambda: call(*arguments, **more), limiter=service.readers)
