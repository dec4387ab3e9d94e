"""`python -m benchmarks [name ...]`: run all benchmarks, or these."""

import sys
import tempfile
from importlib import import_module
from pathlib import Path

NAMES = (
    "parse_only",
    "agents",
    "end_to_end",
    "delta_cost",
    "memory",
    "latency",
    "startup",
    "redaction",
    "sessions",
    "homes",
    "service_listing",
    "delivery",
    "agent_loop",
    "agent_loop_history",
)
OFFLINE = ("first_event",)
"""Only when asked for by name: they start real CLIs."""


def main() -> None:
    """Run them in order."""
    chosen = sys.argv[1:] or NAMES
    unknown = set(chosen) - {*NAMES, *OFFLINE}
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES + OFFLINE)}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in chosen:
            import_module(f"benchmarks.{name}").main(Path(scratch))


main()
