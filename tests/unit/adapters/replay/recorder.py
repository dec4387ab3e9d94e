"""Helper that writes small synthetic recordings."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from agent_mux.sdk.codec import Exit
from agent_mux_testing.fixtures import Fixture, save_fixture


def record(
    root: Path,
    printed: Sequence[bytes],
    *,
    stdin: Sequence[bytes] = (),
    times: Sequence[float] = (),
    wall_s: float = 0.0,
) -> Path:
    fixture = Fixture(
        agent="claude",
        version="0",
        scenario="made_up",
        protocol="stream-json-two-way" if stdin else "stream-json",
        command=("claude",),
        recorded=dt.date(2026, 1, 1),
        stdout=b"".join(line + b"\n" for line in printed),
        times=tuple(times) or (0.0,) * len(printed),
        stdin=tuple(stdin),
        exit=Exit(code=0),
        wall_s=wall_s,
    )
    return save_fixture(fixture, root)
