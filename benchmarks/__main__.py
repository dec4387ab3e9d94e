"""Run all benchmarks, or the named ones: `python -m benchmarks [NAME ...]`."""

import argparse
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

BENCHMARKS = {
    "parse_only": "parsing:measure_claude",
    "protocols": "parsing:measure_protocols",
    "end_to_end": "end_to_end:main",
    "delta_cost": "scaling:measure_delta_cost",
    "memory": "scaling:measure_memory",
    "latency": "latency:main",
    "startup": "startup:main",
    "redaction": "redaction:main",
    "secret_recall": "secret_recall:main",
    "sessions": "sessions:main",
    "agent_files": "agent_files:main",
    "service_listing": "service_listing:main",
    "delivery": "delivery:main",
    "stalled_readers": "large_output:measure_stalled_readers",
    "long_text": "large_output:measure_long_text",
    "large_output": "large_output:measure_output",
    "simultaneous_posts": "large_output:measure_posts",
    "comparison": "comparison:main",
    "agent_loop": "loops:main",
    "agent_loop_history": "loop_history:main",
}
"""Name -> module and function, in the order in which they run."""
OFFLINE = {"first_event": "first_event:main", "coding_tasks": "coding_tasks.benchmark:main"}
"""Benchmarks that start real CLIs. They run only when they are named."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run the benchmarks in order."""
    known = BENCHMARKS | OFFLINE
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(known)}")
    names = parser.parse_args(arguments).names or list(BENCHMARKS)
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            module, _, function = known[name].partition(":")
            getattr(import_module(f"benchmarks.{module}"), function)(Path(scratch))


main()
