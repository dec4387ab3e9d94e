"""Clock, chance, sleep and ids: handed in, so that a run can be played again exactly."""

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

import anyio


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything about the world that a run depends on, besides its model and its tools."""

    now_ms: Callable[[], int] = _now_ms
    """Milliseconds since the Unix epoch."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never jump."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """Wait so many seconds."""
    chance: Callable[[], float] = random.random
    """0 to 1, for jitter."""
    new_id: Callable[[], str] = _new_id
    """Never the same twice."""
