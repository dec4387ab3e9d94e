"""Tokens of stored sessions, for releases that store sums by model when a process ends."""

from typing import Any

from agent_mux.sdk.sessions import ModelCalled
from agent_mux_adapters.copilot.stored_metrics import StoredMetrics


def metrics(**models: tuple[int, int, int]) -> dict[str, Any]:
    return {
        model: {"requests": {"count": calls}, "usage": {"inputTokens": given, "outputTokens": returned}}
        for model, (calls, given, returned) in models.items()
    }


def tokens(found: list[ModelCalled]) -> list[tuple[str, int, int]]:
    return [(call.model, call.usage.input_tokens, call.usage.output_tokens) for call in found]


def processes(*ended: tuple[int, dict[str, Any]]) -> list[list[tuple[str, int, int]]]:
    """Return what each process used; `ended`: its number of messages, and the sums when it ended."""
    stored = StoredMetrics()
    used = []
    for number, (calls, sums) in enumerate(ended):
        stored.calls += calls
        used.append(tokens(list(stored.at_shutdown(sums, f"e{number}"))))
    return used


def test_sums_of_each_process_are_added() -> None:
    first, second = (1, metrics(m=(1, 150, 12))), (1, metrics(m=(1, 150, 12)))
    assert processes(first, second) == [[("m", 150, 12)], [("m", 150, 12)]]


def test_sums_of_the_session_are_not_counted_twice() -> None:
    first, second = (1, metrics(m=(1, 150, 12))), (1, metrics(m=(2, 300, 24)))
    assert processes(first, second) == [[("m", 150, 12)], [("m", 150, 12)]]


def test_process_with_more_calls_than_the_last_is_counted_whole() -> None:
    first, second = (1, metrics(m=(1, 150, 12))), (3, metrics(m=(3, 450, 36)))
    assert processes(first, second) == [[("m", 150, 12)], [("m", 450, 36)]]


def test_model_that_is_new_in_the_session_is_counted_whole() -> None:
    first, second = (1, metrics(m=(1, 150, 12))), (1, metrics(m=(1, 150, 12), n=(1, 20, 2)))
    assert processes(first, second) == [[("m", 150, 12)], [("n", 20, 2)]]


def test_calls_that_are_stored_one_by_one_are_not_counted_again() -> None:
    stored = StoredMetrics()
    stored.has_records = True
    assert list(stored.at_shutdown(metrics(m=(1, 150, 12)), "e")) == []
    stored.calls += 1
    assert tokens(list(stored.at_shutdown(metrics(m=(2, 300, 24)), "f"))) == [("m", 150, 12)]


def test_unexpected_shapes_are_no_tokens() -> None:
    sums: dict[str, Any] = {"a": None, "b": {"usage": [], "requests": "x"}, "c": {"usage": {"inputTokens": "1"}}}
    assert list(StoredMetrics().at_shutdown(sums, "e")) == []
