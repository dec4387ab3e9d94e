"""The ledger of a comparison: an append-only file with one fact per line, and the folder around it.

A line is on the disk before what follows from it happens, so that a comparison that was killed knows what it started.
A line that was cut by a kill is dropped when the comparison is resumed.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.files import make_directory, write_text
from agent_mux.compare.records import (
    CheckResult,
    Comparison,
    ComparisonPlan,
    Judgement,
    StartRecord,
    Trial,
    TrialAttempt,
)
from agent_mux.errors import AgentMuxError

LOCK_TIMEOUT = 1.0  # seconds: a child that a killed process was just starting holds the lock until it is executed
LOCK_POLL = 0.05
COMPARISONS = "comparisons"
"""The directory of the comparisons in the global directory."""
PLAN, START, LEDGER, LOCK = "plan.json", "start.json", "ledger.jsonl", "in-use"


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"):
    """Base of the lines of the ledger."""

    at: int
    """Milliseconds since the epoch."""


class Begun(Fact, frozen=True, kw_only=True, tag="begun"):
    """The comparison was started, or resumed."""

    is_resumed: bool = False


class Calibrated(Fact, frozen=True, kw_only=True, tag="calibrated"):
    """The checks ran once on the untouched start."""

    checks: tuple[CheckResult, ...]


class AttemptStarted(Fact, frozen=True, kw_only=True, tag="attempt_started"):
    """An attempt is about to start its agent."""

    trial: str
    attempt: TrialAttempt


class AttemptEnded(Fact, frozen=True, kw_only=True, tag="attempt_ended"):
    """An attempt ended; the trial continues with another one, or with its checks."""

    trial: str
    attempt: TrialAttempt


class TrialEnded(Fact, frozen=True, kw_only=True, tag="trial_ended"):
    """A trial has its outcome."""

    trial: Trial


class Judged(Fact, frozen=True, kw_only=True, tag="judged"):
    """A judge compared two trials."""

    judgement: Judgement


class Noted(Fact, frozen=True, kw_only=True, tag="noted"):
    """Something that a reader of the result must know."""

    text: str


class Ended(Fact, frozen=True, kw_only=True, tag="ended"):
    """No more trials are started."""

    status: str
    """`ended`, or `interrupted` if trials are left."""
    problem: str = ""
    """Why the comparison could not be carried out, for example because the setup command failed."""


AnyFact = Begun | Calibrated | AttemptStarted | AttemptEnded | TrialEnded | Judged | Noted | Ended
_DECODER = msgspec.json.Decoder(AnyFact)
_ENCODER = msgspec.json.Encoder()


class ComparisonFolder:
    """The folder of a comparison. All methods block."""

    def __init__(self, path: Path) -> None:
        """Name the folder; nothing is read."""
        self.path = path
        self._lock: int | None = None
        self._ledger: int | None = None
        self._writing = threading.Lock()

    @classmethod
    def create(cls, path: Path, plan: ComparisonPlan) -> "ComparisonFolder":
        """Create the folder with its plan, and take it. Raises `AgentMuxError` (CONFIG_ERROR)."""
        folder = cls(path)
        try:
            make_directory(path)
            folder.acquire()
            write_text(path / PLAN, msgspec.json.format(_ENCODER.encode(plan)).decode() + "\n")
        except OSError as error:
            raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be written: {error.strerror or error}") from error
        return folder

    def acquire(self) -> None:
        """Mark the comparison as active in this process. Raises INVALID_STATE_TRANSITION if it is in another one."""
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(LOCK_POLL)
                    continue
                os.close(descriptor)
                why = f"comparison {self.path.name} is active in another process; wait for its end"
                raise AgentMuxError("INVALID_STATE_TRANSITION", why) from None
            break
        self._lock = descriptor

    def is_active(self) -> bool:
        """Return whether a process works on the comparison."""
        if self._lock is not None:
            return True
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def open_ledger(self) -> None:
        """Open the ledger for `append`, without a line that was cut. Raises CONFIG_ERROR."""
        path = self.path / LEDGER
        try:
            self._ledger = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            content = path.read_bytes()
            os.ftruncate(self._ledger, content.rfind(b"\n") + 1)
        except OSError as error:
            raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be written: {error.strerror or error}") from error

    def append(self, fact: AnyFact) -> None:
        """Append a fact; it is on the disk when this returns. Raises CONFIG_ERROR."""
        assert self._ledger is not None  # noqa: S101  # open_ledger was called
        try:
            rest = _ENCODER.encode(fact) + b"\n"
            with self._writing:
                while rest:  # a full disk accepts a part
                    rest = rest[os.write(self._ledger, rest) :]
                os.fdatasync(self._ledger)
        except OSError as error:
            why = f"{self.path / LEDGER} cannot be written: {error.strerror or error}; free disk space and resume"
            raise AgentMuxError("CONFIG_ERROR", why) from error

    def close(self) -> None:
        """Close the ledger and release the lock, so that another process can resume the comparison."""
        for descriptor in (self._ledger, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._ledger = self._lock = None

    def plan(self) -> ComparisonPlan:
        """Return the plan. Raises NOT_FOUND without one, CONFIG_ERROR if it cannot be read."""
        plan: ComparisonPlan = self._read(PLAN, ComparisonPlan)
        return plan

    def facts(self, start: int = 0) -> list[AnyFact]:
        """Return the complete lines of the ledger from number `start`. Raises CONFIG_ERROR for a damaged line."""
        path = self.path / LEDGER
        try:
            lines = path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be read: {error.strerror or error}") from error
        try:
            return [_DECODER.decode(line) for line in lines[start:]]
        except msgspec.MsgspecError as error:
            raise AgentMuxError("CONFIG_ERROR", f"{path} is damaged: {error}") from error

    def comparison(self) -> Comparison:
        """Return everything that is known about the comparison."""
        is_active = self.is_active()  # first, so that a comparison that ends meanwhile is not taken for interrupted
        start = self._read(START, StartRecord) if (self.path / START).exists() else None
        return derive(self.plan(), start, self.facts(), is_active=is_active)

    def _read(self, name: str, kind: Any) -> Any:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            raise AgentMuxError("NOT_FOUND", f"{self.path} is not a comparison: it has no {name}") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be read: {error}") from error


def derive(plan: ComparisonPlan, start: StartRecord | None, facts: Iterable[AnyFact], *, is_active: bool) -> Comparison:
    """Return the state of a comparison after these facts. Pure.

    `is_active`: whether a process works on the comparison. If one does, an interrupted comparison is being resumed; if
    none does, a comparison without its last fact was killed.
    """
    trials: dict[str, Trial] = {trial.id: trial for trial in planned_trials(plan)}
    calibration: list[tuple[CheckResult, ...]] = []
    judgements: list[Judgement] = []
    notes: list[str] = []
    status, problem = "active", ""
    for fact in facts:
        match fact:
            case Begun():
                status, problem = "active", ""
            case Calibrated(checks=checks):
                calibration.append(checks)
            case AttemptStarted(trial=trial, attempt=attempt) | AttemptEnded(trial=trial, attempt=attempt):
                trials[trial] = _with_attempt(trials[trial], attempt)
            case TrialEnded(trial=ended):
                trials[ended.id] = ended
            case Judged(judgement=judgement):
                judgements.append(judgement)
            case Noted(text=text):
                notes.append(text)
            case Ended(status=status, problem=problem):
                pass
    return Comparison(
        plan=plan,
        start=start,
        trials=tuple(trials.values()),
        calibration=tuple(calibration),
        judgements=tuple(judgements),
        status=status if status == "ended" else "active" if is_active else "interrupted",
        notes=tuple(notes),
        problem=problem,
    )


def planned_trials(plan: ComparisonPlan) -> list[Trial]:
    """Return the trials of a plan before they have started, by candidate."""
    return [
        Trial(id=trial_id(candidate.name, number), candidate=candidate.name, number=number)
        for candidate in plan.candidates
        for number in range(1, candidate.trials + 1)
    ]


def trial_id(candidate: str, number: int) -> str:
    """Return the id of a trial."""
    return f"{candidate}-{number}"


def trial_named(found: Comparison, name: str) -> Trial:
    """Return a trial by its id, or the first trial of the candidate with this name. Raises NOT_FOUND."""
    for trial in found.trials:
        if name in {trial.id, trial.candidate}:
            return trial
    known = ", ".join(trial.id for trial in found.trials[:10])
    raise AgentMuxError("NOT_FOUND", f"comparison {found.plan.id} has no trial {name!r}; it has: {known}")


def _with_attempt(trial: Trial, attempt: TrialAttempt) -> Trial:
    others = tuple(one for one in trial.attempts if one.number != attempt.number)
    return msgspec.structs.replace(trial, attempts=(*others, attempt))


def fact_to_dict(fact: AnyFact) -> Mapping[str, Any]:
    """Return the line of the ledger as plain data."""
    plain: Mapping[str, Any] = msgspec.to_builtins(fact)
    return plain
