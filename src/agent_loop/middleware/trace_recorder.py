"""Where traces go: a recorder of anybody, given or found in the context. Source: hooks seed, section 7.2."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

_log = logging.getLogger("agent_loop.tracing")


class SpanHandle(Protocol):
    """Something that takes time."""

    def set(self, key: str, value: Any) -> "SpanHandle":
        """Note a fact about it: text, a number or a truth value. Can be chained."""
        ...

    def end(self) -> None:
        """It is over."""
        ...


class TraceRecorder(Protocol):
    """Keeps spans and events."""

    def start_span(self, name: str) -> SpanHandle:
        """Something begins."""
        ...

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        """Something happened."""
        ...


_RECORDER: ContextVar[TraceRecorder | None] = ContextVar("agent_loop_trace_recorder", default=None)


def current_recorder() -> TraceRecorder | None:
    """The recorder of this context, where there is one."""
    return _RECORDER.get()


@contextmanager
def recording_to(recorder: TraceRecorder | None) -> Iterator[None]:
    """All that is done in this block, and in tasks begun in it, is recorded there."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)


@contextmanager
def quietly(what: str) -> Iterator[None]:
    """What a recorder raises in this block is logged, and no trouble of the run."""
    try:
        yield
    except Exception:  # noqa: BLE001  # a recorder of anybody
        _log.warning("the trace recorder failed to %s; the run goes on without it", what, exc_info=True)


class QuietSpan:
    """A span that never gets in the way."""

    def __init__(self, recorder: TraceRecorder, name: str) -> None:
        self._span: SpanHandle | None = None
        with quietly(f"start the span {name}"):
            self._span = recorder.start_span(name)

    def set(self, key: str, value: Any) -> "QuietSpan":
        """As the recorder does."""
        if self._span is not None:
            with quietly(f"take {key}"):
                self._span.set(key, value)
        return self

    def end(self) -> None:
        """As the recorder does."""
        if self._span is not None:
            with quietly("end a span"):
                self._span.end()
