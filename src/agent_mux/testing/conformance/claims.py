"""`AgentCapabilities.emits` is a claim: it is tested both ways against all recordings of the agent."""

from collections.abc import Iterable, Iterator

from agent_mux.adapter import Adapter
from agent_mux.testing.conformance.recorded import Recorded

MADE_BY_THE_MUX = frozenset(
    {"session_start", "session_end", "stream_fallback", "interrupted", "aborted", "paused", "resumed", "timeout",
     "crash", "debug", "log"}
)  # fmt: skip
"""Types that say nothing about what the agent can tell: every adapter gets them. They need not be claimed."""


def check_claimed_events(adapter: Adapter, recordings: Iterable[Recorded]) -> Iterator[str]:
    """Every type that is claimed was recorded, and every type that was recorded is claimed."""
    claimed = adapter.capabilities.emits - MADE_BY_THE_MUX
    recorded = {event.type for recording in recordings for event in recording.played.events} - MADE_BY_THE_MUX
    if claimed - recorded:
        yield f"claimed in `emits`, but in no recording: {sorted(claimed - recorded)}"
    if recorded - claimed:
        yield f"recorded, but not claimed in `emits`: {sorted(recorded - claimed)}"
