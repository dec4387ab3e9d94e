"""Judge the result of a trial: run the checks in a fresh checkout, with the tests of the start."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from agent_mux.compare.checks import (
    copy_hidden_checks,
    flaky_checks,
    is_tampering,
    protected_paths,
    run_checks,
)
from agent_mux.compare.frozen_start import FrozenStart
from agent_mux.compare.places import Places
from agent_mux.compare.records import CheckResult, StoredPatch
from agent_mux.compare.request import ComparisonRequest
from agent_mux.run.result import RunResult

IsWanted = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrial:
    """What the checks found."""

    checks: tuple[CheckResult, ...]
    tampered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
