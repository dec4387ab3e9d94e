"""The stored outcomes of the coding tasks, by task and agent."""

from pathlib import Path

import msgspec

__all__ = ["RESULTS", "Outcome", "read_results", "write_results"]

RESULTS = Path(__file__).with_name("results.json")


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one task in one harness."""

    version: str
    """The version of the harness."""
    reason: str
    """Why the task failed; empty: it did not."""
    seconds: float
    """From the start of the program to its end."""
    cpu_seconds: float
    """CPU time of the program and its children, which other processes on the machine affect less."""
    model_calls: int


Results = dict[str, dict[str, Outcome]]


def read_results(path: Path = RESULTS) -> Results:
    """Return the stored outcomes; none if there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else {}


def write_results(path: Path, results: Results) -> None:
    """Store the outcomes, sorted by task and agent."""
    ordered = {task: dict(sorted(outcomes.items())) for task, outcomes in sorted(results.items())}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
