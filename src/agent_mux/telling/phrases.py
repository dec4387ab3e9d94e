"""Short words for long things: one line each, safe for a terminal."""

from typing import Any

from agent_mux.events import CostRecord
from agent_mux.plain_json import to_json
from agent_mux.telling.inert import one_line

# What a person recognizes a call by, where its input has it; else the whole input.
_TELLING = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url", "description", "prompt")


def short_input(value: Any, width: int) -> str:
    """A tool's input as a person would name the call."""
    if isinstance(value, dict):
        for name in _TELLING:
            told = value.get(name)
            if isinstance(told, str) and told.strip():
                return one_line(told, width)
            if isinstance(told, list) and told and all(isinstance(word, str) for word in told):
                return one_line(" ".join(told), width)
        return "" if not value else one_line(to_json(value), width)
    return one_line(value if isinstance(value, str) else to_json(value), width)


def duration(milliseconds: float) -> str:
    """`340 ms`, `2.4 s`, `3 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def money(cost: CostRecord | None) -> str:
    """`$0.0123`; empty where nobody knows."""
    if cost is None or cost.source == "unknown":
        return ""
    return f"${cost.total_usd:.4f}"


def count(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def diff_size(diff: str) -> str:
    """`+3 -1`: lines added and removed by a unified diff."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"+{added} -{removed}"
