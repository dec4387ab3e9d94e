"""What `amux runs list` and `amux runs show` print of a run, of this machine or of a service.

Both have the same JSON form: that of `RunRecord` and of `RunDetails`, without absent fields.
"""

import sys
from typing import Any

from agent_mux.cli.command_output import Dollars
from agent_mux.cli.terminal import local_minute

COLUMNS = ("run", "agent", "state", "started", "cost", "waits", "directory", "prompt")
_LONGEST_CELL = 40  # characters
_LONGEST_FIELD = 2000


def plain_record(record: Any) -> dict[str, Any]:
    """Return the JSON form of a run without absent fields."""
    import msgspec

    return {name: value for name, value in msgspec.to_builtins(record).items() if value not in (None, "", [], (), {})}


def row_of(run: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a run in a table, by `COLUMNS`."""
    started = run.get("startedAt") or run.get("createdAt")
    return {
        "run": run["runId"],
        "agent": run["agent"],
        "state": _outcome_of(run),
        "started": local_minute(started) if started else None,
        "cost": Dollars.of(run.get("costUsd")),
        "waits": "; ".join(one["description"] for one in run.get("pending", ()))[:_LONGEST_CELL],
        "directory": run.get("cwd"),
        "prompt": " ".join(_prompt_of(run).split())[:_LONGEST_CELL],
    }


def _state_of(run: dict[str, Any]) -> str:
    return run.get("exitReason") or run.get("state") or "ended"


def _outcome_of(run: dict[str, Any]) -> str:
    """Return how the run ended, or its state; with the conditions of `fail_on` that held."""
    failed_on = run.get("failedOn", ())
    return f"{_state_of(run)}, failed on {', '.join(failed_on)}" if failed_on else _state_of(run)


def _prompt_of(run: dict[str, Any]) -> str:
    prompt = run.get("prompt") or run.get("request", {}).get("prompt", "")
    return prompt if isinstance(prompt, str) else "\n\n".join(prompt)


def print_record(run: dict[str, Any], answer: str) -> None:
    """Print a run for people. `answer`: the command that answers its requests."""
    row, duration, cost = row_of(run), run.get("durationMs"), run.get("costUsd")
    _print_fields(
        {
            "run": run["runId"],
            "agent": run["agent"],
            "model": run.get("model"),
            "state": _state_of(run),
            "started": row["started"],
            "duration": None if duration is None else f"{duration / 1000:.1f} s",
            "turns": run.get("turnCount"),
            "cost": None if cost is None else f"${cost:.4f}",
            "session": run.get("sessionId"),
            "directory": run.get("cwd"),
            "owner": run.get("owner"),
            "tags": ", ".join(run.get("tags", ())),
            "prompt": _prompt_of(run),
            "process": run.get("pid"),
            "journal": run.get("journal"),
            "note": run.get("problem"),
        }
    )
    for pending in run.get("pending", ()):
        _print_fields({"waits for": f"{pending['description']}  [{pending['id']}]", "answer": answer})
    if "result" in run:
        _print_result(run["result"])


def _print_result(result: dict[str, Any]) -> None:
    from agent_mux.cli.terminal import sanitize
    from agent_mux.cli.views import ANSWER_CUT, name_cut, name_denials
    from agent_mux.run.result import Denial

    _print_fields(
        {
            "changed files": ", ".join(file["path"] for file in result.get("changedFiles", ())),
            "denied": name_denials([Denial.from_dict(denial) for denial in result.get("denials", ())]),
            "answer cut": ANSWER_CUT if result.get("stopReason") == "length" else None,
            "text cut": name_cut(cut, result["runId"]) if (cut := result.get("truncatedBytes")) else None,
            "failed on": ", ".join(result.get("failedOn", ())),
            "error": result.get("error", {}).get("message"),
        }
    )
    if result.get("text"):
        sys.stdout.write("\n" + sanitize(result["text"]).removesuffix("\n") + "\n")


def _print_fields(fields: dict[str, Any]) -> None:
    from agent_mux.cli.terminal import one_line

    for name, value in fields.items():
        if value not in (None, ""):
            sys.stdout.write(f"{name:<14}{one_line(str(value), _LONGEST_FIELD)}\n")
