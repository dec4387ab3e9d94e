"""What is known about the agents' quotas on this machine: from recordings of runs and from stored sessions.

Nothing is asked of a provider: each answer is a report that an agent received earlier, with its time. See
docs/spec/run-api.md, section 2.8.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterable
from heapq import nlargest
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_mux._util.logs import LOGGER
from agent_mux.assembler.quota import QuotaState
from agent_mux.errors import AgentMuxError
from agent_mux.events import QuotaWindow, TokenUsageEvent
from agent_mux.journal.file import JournalReader
from agent_mux.run.derivation import CodecFactory, JournalEvents, codec_factory
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.sessions import FoundSession, SessionDescribed, SessionStore, UnreadableSessionError

MAX_RECORDINGS = 20
"""Number of the newest runs, and of the newest sessions, of an agent that are read until one has a report."""


class AgentQuota(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The quota of an agent's account as its provider last reported it to a run or a session on this machine."""

    agent: str
    """Registered name of the agent."""
    observed_at: Annotated[int, Meta(description="Time of the report, in milliseconds since the epoch.")]
    windows: tuple[QuotaWindow, ...]
    """The windows in which the provider counts, as last reported."""
    run_id: Annotated[str | None, Meta(description="The run that received the report.")] = None
    session_id: Annotated[
        str | None, Meta(description="Unified id of the stored session that has the report, if it is not from a run.")
    ] = None


_Quotas = list[AgentQuota]  # `Quotas.list` hides the builtin


class Quotas:
    """The quotas that are known on this machine. All methods block and start nothing."""

    def __init__(self, adapters: AdapterRegistry, journals: Path) -> None:
        """Create the namespace without reading anything. `journals`: the directory of the runs' recordings."""
        self._adapters = adapters
        self._journals = journals

    def list(self) -> list[AgentQuota]:
        """Return what is known, by agent. Agents about whose quota nothing is known are left out."""
        return self._known([adapter.agent for adapter in self._adapters])

    def get(self, agent: str) -> AgentQuota | None:
        """Return what is known about the quota of an agent; None if nothing is.

        Raises AGENT_NOT_FOUND.
        """
        return next(iter(self._known([self._adapters.get(agent).agent])), None)

    def _known(self, agents: Iterable[str]) -> _Quotas:
        wanted = set(agents)
        found = {quota.agent: quota for quota in self._of_runs(wanted)}
        for agent in sorted(wanted):
            quota = self._of_sessions(self._adapters.get(agent))
            if quota is not None and (agent not in found or quota.observed_at > found[agent].observed_at):
                found[agent] = quota
        return [found[agent] for agent in sorted(found)]

    # -- recordings of runs

    def _of_runs(self, wanted: set[str]) -> _Quotas:
        """Return the newest reports in recordings, of the agents that have one."""
        make_codec = codec_factory(self._adapters)
        found: dict[str, AgentQuota] = {}
        read: Counter[str] = Counter()
        for path in sorted(self._journals.glob("*.journal"), reverse=True):  # named by ULID, so the newest is first
            try:
                header = JournalReader(path).header
                agents = {header.stream.agent, *map(_agent_of, header.options.get("fallback", ()))} & wanted
                agents = {agent for agent in agents - found.keys() if read[agent] < MAX_RECORDINGS}
                if not agents:
                    continue
                read.update(agents)
                reports = _reports_in(path, make_codec)
            except (AgentMuxError, OSError, msgspec.MsgspecError) as error:
                logging.getLogger(LOGGER).warning("the quota in %s is not read: %s", path, error)
                continue
            found.update({agent: quota for agent, quota in reports.items() if agent in agents})
        return list(found.values())

    # -- stored sessions

    def _of_sessions(self, adapter: Adapter) -> AgentQuota | None:
        store = adapter.sessions()
        if store is None or not store.has_quota:
            return None
        try:
            newest = nlargest(MAX_RECORDINGS, store.find(AgentPaths(environ=os.environ)), key=lambda one: one.modified)
        except (OSError, UnreadableSessionError) as error:
            logging.getLogger(LOGGER).warning("the sessions of %s are not read: %s", adapter.agent, error)
            return None
        for found in newest:
            try:
                quota = _report_of(adapter.agent, store, found)
            except (OSError, UnreadableSessionError) as error:
                logging.getLogger(LOGGER).warning("%s is not read: %s", found.path, error)
                continue
            if quota is not None:
                return quota
        return None


def _agent_of(fallback: str) -> str:
    return fallback.partition(":")[0]


def _reports_in(path: Path, make_codec: CodecFactory) -> dict[str, AgentQuota]:
    """Return the last report of each agent in a recording."""
    journal = JournalEvents(path, make_codec)
    found: dict[str, AgentQuota] = {}
    while (batch := journal.next_batch()) is not None:
        for event in batch:
            if isinstance(event, TokenUsageEvent) and event.quota:
                found[event.agent] = AgentQuota(
                    agent=event.agent, observed_at=event.timestamp, windows=event.quota, run_id=event.run_id
                )
    return found


def _report_of(agent: str, store: SessionStore, found: FoundSession) -> AgentQuota | None:
    """Return the last report in a stored session; None without any."""
    state, observed_at, session_id = QuotaState(), found.modified // 1_000_000, None
    for entry in store.open(found).read():
        match entry.fact:
            case facts.QuotaReported(windows):
                state.update(windows)
                observed_at = entry.at or observed_at
            case SessionDescribed(session_id=str(native_id)):
                session_id = f"{agent}:{native_id}"
    if not state.windows:
        return None
    return AgentQuota(agent=agent, observed_at=observed_at, windows=state.windows, session_id=session_id)
