"""Golden events: `events.jsonl` beside the recording, compact. They are rewritten only when asked for, and reviewed."""

import os
from collections.abc import Iterator

from agent_mux.events import encode_event
from agent_mux.testing.conformance.recorded import Recorded

GOLDEN = "events.jsonl"
UPDATE = "AMUX_UPDATE_GOLDENS"


def check_golden(recorded: Recorded) -> Iterator[str]:
    """The events are the golden ones. With `AMUX_UPDATE_GOLDENS=1` in the environment they become the golden ones."""
    path = recorded.folder / GOLDEN
    now = [encode_event(event, accumulated=False).decode() for event in recorded.played.events]
    if os.environ.get(UPDATE) == "1":
        path.write_text("".join(f"{line}\n" for line in now), "utf-8")
        return
    if not path.exists():
        yield f"there is no {GOLDEN}; set {UPDATE}=1 to write it, and review it"
        return
    golden = path.read_text("utf-8").split("\n")[:-1]  # not splitlines: U+2028 is no end of a line here
    for index, (was, line) in enumerate(zip(golden, now, strict=False)):
        if was != line:
            yield f"event {index} was: {was}; is: {line}"
            return
    if len(golden) != len(now):
        yield f"there were {len(golden)} events, there are {len(now)}"
