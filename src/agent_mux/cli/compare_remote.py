"""Comparisons of a service at this terminal: `amux compare PROMPT --server URL`, `amux compare watch`, `resume`.

The service carries the comparison out. Ctrl-C stops watching only.
"""

import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from agent_mux.cli import exit_codes
from agent_mux.cli.command_output import Invocation, ServiceEndpoint, print_note, print_result, shown_json
from agent_mux.cli.compare_driver import WITHOUT_CHECK, has_lanes, pairs_of, request_fields
from agent_mux.cli.compare_flags import CompareFlags
from agent_mux.cli.compare_output import print_report
from agent_mux.cli.compare_progress import ProgressLines
from agent_mux.cli.errors import usage_error
from agent_mux.cli.output import leave_without_reader
from agent_mux.cli.request import screen_for
from agent_mux.cli.run_driver import ending_signals
from agent_mux.client.remote.comparison import RemoteComparison, TrialEvent
from agent_mux.compare.ledger import AnyFact, AttemptEnded, Ended, TrialEnded, derive
from agent_mux.events import (
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    BaseEvent,
    InputRequiredEvent,
)
from agent_mux.run.base import RunState
from agent_mux.run.interaction import approval_text
from agent_mux.sdk.interactions import ApprovalDetail, Choice, Deny, InputDetail, PendingInteraction, Text

if TYPE_CHECKING:
    from agent_mux.client.remote import RemoteMux
    from agent_mux.compare.records import Comparison, ComparisonPlan
    from agent_mux.sdk.codec import Delivery

MAX_KEPT = 2000
"""Events of an attempt that can be shown again, the latest."""


class StoppedWatchingError(Exception):
    """The person stopped watching; the comparison continues."""


class RemoteTrialRun:
    """The run of a trial at a service, with the part of a `RunHandle` that a lane uses."""

    def __init__(self, comparison: RemoteComparison, trial: str) -> None:
        self._comparison = comparison
        self._trial = trial
        self._observers: list[Callable[[Any], Any]] = []
        self._kept: deque[BaseEvent] = deque(maxlen=MAX_KEPT)
        self._count = 0
        self._changed = anyio.Event()
        self._pending: dict[str, PendingInteraction] = {}
        self.state: RunState = "running"

    @property
    def interaction(self) -> "RemoteTrialRun":
        """The requests that wait for an answer, and `respond`: parts of this object."""
        return self

    @property
    def pending(self) -> tuple[PendingInteraction, ...]:
        """The requests that wait for an answer."""
        return tuple(self._pending.values())

    def on(self, _: type[BaseEvent], observer: Callable[[Any], Any]) -> None:
        """Call `observer` with every event from now on."""
        self._observers.append(observer)

    def receive(self, event: BaseEvent) -> None:
        """Take in an event of the stream."""
        match event:
            case ApprovalRequestEvent() | InputRequiredEvent():
                self._pending[event.interaction_id] = _pending_of(event)
            case ApprovalGrantedEvent() | ApprovalDeniedEvent():
                self._pending.pop(event.interaction_id, None)
        self._kept.append(event)
        self._count += 1
        for observer in self._observers:
            observer(event)
        self._announce()

    def end(self) -> None:
        """Mark the run as over."""
        self.state = "completed"
        self._pending.clear()
        self._announce()

    def _announce(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def events(self) -> AsyncIterator[BaseEvent]:
        """Yield the events that are kept, and further ones until the run is over."""
        seen = self._count - len(self._kept)
        while True:
            changed = self._changed
            seen = max(seen, self._count - len(self._kept))
            for event in list(self._kept)[len(self._kept) - (self._count - seen) :]:
                seen += 1
                yield event
            if seen == self._count:
                if self.state == "completed":
                    return
                await changed.wait()

    async def approve(self) -> "Delivery":
        """Approve the oldest action."""
        return await self._comparison.approve(self._trial)

    async def deny(self) -> "Delivery":
        """Deny the oldest action, or the oldest question."""
        questions = [one.id for one in self.pending if one.type == "input"]
        if len(questions) < len(self._pending):
            return await self._comparison.deny(self._trial)
        delivery = await self._comparison.deny(self._trial, interaction_id=next(iter(questions), None))
        for one in questions[:1]:
            self._pending.pop(one, None)
        return delivery

    async def respond(self, interaction_id: str, response: Text | Choice | Deny) -> "Delivery":
        """Answer a question."""
        if isinstance(response, Deny):
            delivery = await self._comparison.deny(self._trial, response.reason, interaction_id=interaction_id)
        else:
            answer = response.text if isinstance(response, Text) else response.option
            delivery = await self._comparison.respond(self._trial, interaction_id, answer)
        self._pending.pop(interaction_id, None)
        return delivery

    async def steer(self, text: str) -> "Delivery":
        """Send a message into the running turn."""
        return await self._comparison.steer(self._trial, text)

    async def abort(self) -> "Delivery":
        """Abort the run."""
        return await self._comparison.abort(self._trial)


def _pending_of(event: ApprovalRequestEvent | InputRequiredEvent) -> PendingInteraction:
    detail: ApprovalDetail | InputDetail
    if isinstance(event, ApprovalRequestEvent):
        detail = ApprovalDetail(
            action=event.action, detail=event.detail, tool_name=event.tool_name, risk_level=event.risk_level,
            command=event.command, paths=tuple(event.paths), tool_call_id=event.tool_call_id,
            tool_input=event.tool_input, diff=event.diff,
        )  # fmt: skip
        text = approval_text(event.action, event.detail)
    else:
        detail = InputDetail(question=event.question, context=event.context, options=(), source=event.source)
        text = event.question
    return PendingInteraction(
        id=event.interaction_id,
        type="approval" if isinstance(event, ApprovalRequestEvent) else "input",
        run_id=event.run_id,
        description=text,
        detail=detail,
        created_at=event.timestamp,
    )


class FollowedComparison:
    """A comparison of a service, with the part of a `ComparisonRun` that the views of this machine use."""

    def __init__(self, remote: RemoteComparison, plan: "ComparisonPlan", tasks: anyio.abc.TaskGroup) -> None:
        """`tasks`: carries out what `stop` begins."""
        self._remote = remote
        self._plan = plan
        self._tasks = tasks
        self._facts: list[AnyFact] = []
        self._runs: dict[str, RemoteTrialRun] = {}
        self._observers: list[Callable[[str, Any], None]] = []
        self.id = remote.id

    @property
    def comparison(self) -> "Comparison":
        """Everything that is known about it now."""
        is_over = bool(self._facts) and isinstance(self._facts[-1], Ended)
        return derive(self._plan, None, self._facts, is_active=not is_over)

    def on_run(self, observer: Callable[[str, Any], None]) -> None:
        """Call `observer` with the id of the trial and the run of each attempt, before its first event."""
        self._observers.append(observer)

    async def facts(self) -> AsyncIterator[AnyFact]:
        """Yield the facts of the ledger; events reach the runs."""
        async for message in self._remote.messages(has_events=bool(self._observers)):
            if isinstance(message, TrialEvent):
                self._run_of(message.trial).receive(message.event)
                continue
            self._facts.append(message)
            match message:
                case AttemptEnded(trial=trial):
                    self._end(trial)
                case TrialEnded(trial=ended):
                    self._end(ended.id)
            yield message

    def _run_of(self, trial: str) -> RemoteTrialRun:
        if trial not in self._runs:
            run = self._runs[trial] = RemoteTrialRun(self._remote, trial)
            for observer in self._observers:
                observer(trial, run)
        return self._runs[trial]

    def _end(self, trial: str) -> None:
        run = self._runs.pop(trial, None)
        if run is not None:
            run.end()

    def stop(self) -> None:
        """Abort the active trials and start no further one; the comparison can be resumed."""
        self._tasks.start_soon(self._remote.stop)

    def __await__(self) -> Any:
        return self._remote.result().__await__()


def start_at_service(prompt: str | None, flags: CompareFlags, service: ServiceEndpoint, invocation: Invocation) -> int:
    """Start a comparison at a service and follow it. Returns the exit code of its gate."""
    task, candidates, rules = request_fields(prompt, flags, asks=True)  # a person can answer with `watch` at any time

    async def begin(mux: "RemoteMux") -> RemoteComparison:
        if not (rules.get("checks") or rules.get("hidden_checks")):
            print_note(WITHOUT_CHECK)
        comparison = await mux.compare(task, candidates=candidates, **rules)
        comparison.detach()
        return comparison

    return _follow(begin, service, invocation)


def resume_at_service(
    name: str | None, env: list[str], settings: list[str], service: ServiceEndpoint, invocation: Invocation
) -> int:
    """Resume a comparison of a service and follow it. Returns the exit code of its gate."""
    if settings:
        why = "a service resumes with the options of its plan"
        raise usage_error(f"--set cannot be combined with --server: {why}; start a new comparison with these options")
    variables = pairs_of(env, "--env")

    async def begin(mux: "RemoteMux") -> RemoteComparison:
        comparison = await mux.resume_comparison(name, env=variables)
        comparison.detach()
        return comparison

    return _follow(begin, service, invocation)


def watch_comparison(name: str | None, service: ServiceEndpoint, invocation: Invocation) -> int:
    """Follow a comparison of a service from its beginning. Returns the exit code of its gate."""
    return _follow(lambda mux: mux.attach_comparison(name), service, invocation)


def _follow(begin: Callable[["RemoteMux"], Any], service: ServiceEndpoint, invocation: Invocation) -> int:
    async def work() -> str:
        async with service.client() as mux:
            remote: RemoteComparison = await begin(mux)
            await _show(remote, service, invocation)
            await remote.result()  # raises why it could not be carried out
            return remote.id

    try:
        name = anyio.run(work)
    except* StoppedWatchingError as stopped:
        text = str(_first(stopped))
    else:
        return print_report(service.client().comparisons, name, invocation)
    sys.stderr.write(f"{text}\n")
    return exit_codes.ABORTED


def _first(error: BaseException) -> BaseException:
    """Return the first error in groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _show(remote: RemoteComparison, service: ServiceEndpoint, invocation: Invocation) -> None:
    """Show a comparison until it is over.

    Raises `StoppedWatchingError` after a signal, and `BrokenPipeError` when the reader of standard output is gone.
    """
    at = f"{remote.id} --server {service.url}"
    left = StoppedWatchingError(
        f"stopped watching; the comparison continues (amux compare watch {at} shows it, amux compare stop {at} ends it)"
    )
    plan = (await remote.comparison()).plan
    async with anyio.create_task_group() as tasks:
        followed: Any = FollowedComparison(remote, plan, tasks)
        if has_lanes(invocation):
            from agent_mux.cli.compare_terminal import LanesView

            screen = screen_for(no_color=invocation.no_color, verbose=False)
            await LanesView(followed, screen, leave_with=left, service=f"--server {service.url}").show()
        else:
            with anyio.open_signal_receiver(*ending_signals()) as signals:
                tasks.start_soon(_leave_on_signal, signals, left)
                tasks.start_soon(leave_without_reader)
                await (_print_lines(followed) if invocation.json else _print_progress(followed))
        tasks.cancel_scope.cancel()


async def _leave_on_signal(signals: AsyncIterator[signal.Signals], left: StoppedWatchingError) -> None:
    async for _ in signals:
        raise left


async def _print_progress(followed: Any) -> None:
    await ProgressLines(sys.stderr, followed, is_quiet=False).show()


async def _print_lines(followed: Any) -> None:
    """Print each fact as a line of JSON, as `GET /v1/comparisons/{id}/events` has it."""
    async for fact in followed.facts():
        sys.stdout.write(shown_json({"type": "fact", "fact": fact}) + "\n")
        sys.stdout.flush()


def stop_comparison(name: str, service: ServiceEndpoint, invocation: Invocation) -> int:
    """Stop a comparison of a service, and return when it is over."""
    stopped = service.client().comparisons.stop(name)
    return print_result(invocation, f"comparison {stopped} is over", {"stopped": stopped})


def require_service(invocation: Invocation, command: str) -> ServiceEndpoint:
    """Return the service of the command line. Raises VALIDATION_ERROR without one."""
    if invocation.service is None:
        why = "a comparison of this machine is shown and stopped where it was started"
        raise usage_error(f"amux compare {command} needs --server URL: {why}; amux compare show prints its results")
    return invocation.service
