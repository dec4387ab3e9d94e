"""The last lines of a run, for a person."""

from collections.abc import Iterable

from agent_mux.run.result import RunResult
from agent_mux.telling.event_lines import Line, Mark
from agent_mux.telling.phrases import count, duration, money

_MARK_OF_REASON: dict[str, Mark] = {"completed": "good", "aborted": "warning", "interrupted": "warning"}


def ending(result: RunResult) -> Iterable[Line]:
    """How it went, and why if it did not go well; then where the recording is."""
    yield Line(_MARK_OF_REASON.get(result.exit_reason, "bad"), result.exit_reason.replace("_", " "), _figures(result))
    if result.journal is not None:
        yield Line("note", f"journal: {result.journal}", whole=True)
    yield from trouble(result)


def trouble(result: RunResult) -> Iterable[Line]:
    """Why the run did not complete."""
    if result.error is not None:
        yield Line("error", result.error.message, f"[{result.error.code}] ({result.agent})", whole=True)


def _figures(result: RunResult) -> str:
    usage = result.token_usage
    figures = (
        count(result.turn_count, "turn"),
        duration(result.duration_ms),
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out" if usage is not None else "",
        money(result.cost),
    )
    return ", ".join(figure for figure in figures if figure)
