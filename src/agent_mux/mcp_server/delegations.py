"""One run that somebody delegated, as the server sees it.

All runs of one server: started within its limits, found by their ids, ended together.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from msgspec import UNSET, UnsetType

from agent_mux._util.sanitize import one_line
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, CostEvent, TurnEndEvent, TurnStartEvent
from agent_mux.mcp_server.answers import LimitsInfo
from agent_mux.mcp_server.entries import file_of, is_told
from agent_mux.mcp_server.limits import Limits, Spending
from agent_mux.mcp_server.requests import StartRun
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.options import ApprovalMode

MOST_FILES = 200  # that are remembered as changed; the events have them all


class Delegation:
    """A run, and what is remembered of it: numbers and names, never what it printed."""

    def __init__(self, run: RunHandle, on_cost: Callable[[str, float], None]) -> None:
        """Listen from the first event on."""
        self.run = run
        self.prompt = ""
        """Its beginning."""
        self.cwd = ""
        self.approval_mode: ApprovalMode = "deny"
        self.is_kept_open = False
        self.count = 0
        """Events so far."""
        self.told = 0
        """Events up to the last one that has an entry."""
        self.cursor = 0
        """Events that were shown to the client."""
        self.files: dict[str, None] = {}
        self.cost_usd: float | None = None
        self.is_over = False
        self._is_between_turns = False
        self._on_cost = on_cost
        self._news = anyio.Event()
        run.on("*", self._see)

    def _see(self, event: AgentEvent) -> None:
        self.count += 1
        if is_told(event):
            self.told = self.count
        path = file_of(event)
        if path is not None and len(self.files) < MOST_FILES:
            self.files[path] = None
        if isinstance(event, CostEvent) and event.cost.source != "unknown":
            self.cost_usd = event.cost.total_usd
            self._on_cost(self.run.run_id, event.cost.total_usd)
        elif isinstance(event, TurnStartEvent | TurnEndEvent) and event.subagent_id is None:
            self._is_between_turns = isinstance(event, TurnEndEvent)
        self._wake()

    def end(self) -> None:
        """The run is over: its result is there."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    @property
    def is_idle(self) -> bool:
        """It has done all it was asked, and waits for a further prompt. A run that is not kept open is about to end."""
        return self.is_kept_open and self._is_between_turns and not self.is_over and not self.run.is_busy

    @property
    def is_waiting(self) -> bool:
        """It is over, or it waits for somebody."""
        return self.is_over or self.is_idle or bool(self.run.interaction.pending)

    async def until_news(self, seconds: float) -> None:
        """Wait for the next event, or the end, at most so long."""
        with anyio.move_on_after(seconds):
            await self._news.wait()


SHOWN_PROMPT = 120  # characters, in the list of runs
TAG = "mcp-server"
"""Of all runs that are started here."""


class Delegations:
    """Starts runs and remembers them. Nothing here waits."""

    def __init__(self, mux: AgentMux, limits: Limits, tasks: anyio.abc.TaskGroup) -> None:
        """`tasks`: where runs are ended that cost too much; inside of the client's block.

        Raises AGENT_NOT_FOUND for an agent of the limits that is not registered.
        """
        self.mux = mux
        self.limits = limits
        self._allowed = {mux.adapters.get(name).agent for name in limits.agents}
        self._spending = Spending(limits.max_cost_usd)
        self._tasks = tasks
        self._all: dict[str, Delegation] = {}
        mux.on_run(self._began)

    def _began(self, run: RunHandle) -> Callable[[], None]:
        self._all[run.run_id] = begun = Delegation(run, self._spent)
        return begun.end

    def _spent(self, run_id: str, total_usd: float) -> None:
        self._spending.see(run_id, total_usd)
        if self._spending.is_passed:
            for one in self.living:
                self._tasks.start_soon(one.run.abort)

    @property
    def all(self) -> list[Delegation]:
        """In the order in which they were started."""
        return list(self._all.values())

    @property
    def living(self) -> list[Delegation]:
        """Those that are not over."""
        return [one for one in self._all.values() if not one.is_over]

    def get(self, run_id: str | UnsetType) -> Delegation:
        """The run with this id; the last one where none is named. Raises VALIDATION_ERROR where there is none."""
        if run_id is UNSET:
            if not self._all:
                raise AgentMuxError("VALIDATION_ERROR", "no run was started yet; start_run starts one")
            return self.all[-1]
        found = self._all.get(run_id)
        if found is None:
            raise AgentMuxError("VALIDATION_ERROR", f"no run {run_id[:64]!r} was started here; list_runs shows those")
        return found

    def agents(self) -> list[str]:
        """Registered names of those that may be started. Not those that need a program to be named: none is taken."""
        known = [name for name in self.mux.adapters.names() if not self._allowed or name in self._allowed]
        any_program = {one.agent for one in self.mux.adapters if one.needs_command}
        return [name for name in known if name not in any_program]

    def left(self) -> LimitsInfo:
        """What may still be done."""
        limits = self.limits
        return LimitsInfo(
            roots=[str(root) for root in limits.roots.directories],
            depth=limits.depth,
            max_depth=limits.max_depth,
            runs_left=0 if limits.is_deepest else max(limits.max_runs_total - len(self._all), 0),
            places_free=max(limits.max_runs - len(self.living), 0),
            timeout_ms=round(limits.timeout * 1000),
            approval_modes=list(limits.modes),
            cost_left_usd=self._spending.rest,
        )

    def start(self, asked: StartRun) -> Delegation:
        """Start a run. It does not wait: a call that is cancelled has started it, and is answered, or has not.

        Raises as `AgentMux.run` does, and BUDGET_EXCEEDED, CAPABILITY_ERROR, AGENT_NOT_FOUND or VALIDATION_ERROR for
        what the limits do not allow.
        """
        self._check_room()
        options = self._options(asked)
        run = self.mux.run(**options)
        begun = self._all[run.run_id]
        begun.prompt = one_line(asked.prompt, SHOWN_PROMPT)
        begun.cwd, begun.approval_mode = options["cwd"], options["approval_mode"]
        begun.is_kept_open = asked.keep_open
        return begun

    def _check_room(self) -> None:
        limits = self.limits
        if limits.is_deepest:
            deep = f"this is delegated work already (depth {limits.depth} of {limits.max_depth}): do it yourself"
            raise AgentMuxError("BUDGET_EXCEEDED", deep)
        if len(self._all) >= limits.max_runs_total:
            raise AgentMuxError("BUDGET_EXCEEDED", f"all {limits.max_runs_total} runs of this server were started")
        if self._spending.is_spent:
            spent = f"the budget is spent: {self._spending.total:.4f} of {limits.max_cost_usd:g} USD"
            raise AgentMuxError("BUDGET_EXCEEDED", spent)
        if len(self.living) >= limits.max_runs:
            busy = f"{len(self.living)} runs are going on, which is the most; wait for one (watch_run) or stop one"
            raise AgentMuxError("BUDGET_EXCEEDED", busy, recoverable=True)

    def _options(self, asked: StartRun) -> dict[str, Any]:
        limits = self.limits
        agent = self.mux.adapters.get(asked.agent).agent
        self._require_allowed(agent)
        timeout = limits.timeout if asked.timeout_ms is UNSET else min(asked.timeout_ms / 1000, limits.timeout)
        wanted_cost = None if asked.max_cost_usd is UNSET else asked.max_cost_usd
        rest = self._spending.rest
        costs = [cost for cost in (wanted_cost, rest) if cost is not None]
        return {
            "agent": agent,
            "prompt": asked.prompt,
            "cwd": str(self._directory(asked)),
            "model": None if asked.model is UNSET else asked.model,
            "approval_mode": limits.approval_mode(None if asked.approval_mode is UNSET else asked.approval_mode),
            "timeout": timeout,
            "max_cost_usd": min(costs, default=None),
            "interactive": asked.keep_open,
            "session_id": self._session(asked, agent),
            "env": limits.below(rest).environment(),
            "tags": (TAG,),
        }

    def _require_allowed(self, agent: str) -> None:
        if agent not in self.agents():
            known = f"this server may not start {agent!r}; it may start {', '.join(self.agents())}"
            raise AgentMuxError("AGENT_NOT_FOUND", known)

    def _directory(self, asked: StartRun) -> Path:
        if asked.cwd is UNSET and asked.continue_run is not UNSET:
            return self.limits.roots.directory(self.get(asked.continue_run).cwd)
        return self.limits.roots.directory(None if asked.cwd is UNSET else asked.cwd)

    def _session(self, asked: StartRun, agent: str) -> str | None:
        if asked.continue_run is UNSET:
            return None
        before = self.get(asked.continue_run)
        if not before.is_over:
            going = f"run {before.run.run_id} goes on: use send_prompt"
            raise AgentMuxError("VALIDATION_ERROR", going)
        if before.run.agent != agent or before.run.session_id is None:
            other = f"the session of run {before.run.run_id} is one of {before.run.agent}: continue it with that agent"
            raise AgentMuxError("VALIDATION_ERROR", other)
        return before.run.session_id

    def kill_all(self) -> None:
        """End them at once."""
        for one in self.living:
            one.run.kill()
