"""After a crash: what became of the runs that were alive. Their journals tell, whatever was written of them elsewhere.

A run that had begun is over: its processes are gone (the reaper saw to it, and here it is made sure of), and it is
`killed`, unless its journal has its end. One that still waited for a place begins again to wait.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from agent_mux.plain_json import to_json
from agent_mux.process.marker import kill_processes_of
from agent_mux.run.derive import DerivedRun, MakeCodec
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import RunError, RunResult
from agent_mux.run.state import state_after
from agent_mux.service.runs.live import ended_values, now_ms
from agent_mux.service.store.runs import RunRow


def mended_values(run_id: str, journal: Path, make_codec: MakeCodec) -> dict[str, Any]:
    """The columns of a run that was alive when the server was killed. Blocking: it reads the whole journal.

    Raises PARSE_ERROR for a journal that is damaged, `OSError` for one that cannot be read.
    """
    kill_processes_of(run_id)
    derived = DerivedRun(journal, make_codec)
    types: Counter[str] = Counter()
    for _, events in derived.batches():
        types.update(event.type for event in events)
    result = derived.result()
    return {
        **ended_values(result),
        "state": state_after(result.exit_reason),
        "ended_at": now_ms(),
        "event_count": derived.event_count,
        "event_types": to_json(types),
        "journal_bytes": journal.stat().st_size,
    }


def lost_values(row: RunRow, why: str) -> dict[str, Any]:
    """The columns of a run that left nothing behind. `why`: for people."""
    kill_processes_of(row.run_id)
    result = RunResult(
        run_id=row.run_id,
        agent=row.agent,
        model=row.model,
        session_id=None,
        exit_reason="killed",
        exit_code=None,
        signal=None,
        duration_ms=0,
        turn_count=0,
        cost=None,
        token_usage=None,
        error=RunError("AGENT_CRASH", why),
        ledger=Ledger(),
        tags=row.tags,
    )
    return {**ended_values(result), "state": "killed", "ended_at": now_ms(), "event_count": 0}
