"""What a comparison learns from the events and the result of a run: usage, tools, outside accesses, the end."""

from typing import Any

from agent_evaluation.outcomes import RunEnd
from agent_mux.compare.records import RunUsage
from agent_mux.events import DebugEvent, ToolCallReadyEvent
from agent_mux.run.base import Run
from agent_mux.run.result import RunResult

MAX_TOOLS = 1000
MAX_TEXT = 4000  # characters of the last message
MAX_NOTES = 20


class RunObserver:
    """Collects the tool calls and warnings of a run as they happen."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        """Names of tools in the order of their calls, at most `MAX_TOOLS`."""
        self.calls: list[tuple[str, Any]] = []
        """The same calls with their inputs."""
        self.warnings: list[str] = []

    def watch(self, run: Run) -> None:
        """Observe a run from its first event."""
        run.on(ToolCallReadyEvent, self._add_call)
        run.on(DebugEvent, self._add_warning)

    def _add_call(self, event: ToolCallReadyEvent) -> None:
        if len(self.calls) < MAX_TOOLS:
            self.tools.append(event.tool_name)
            self.calls.append((event.tool_name, event.input))

    def _add_warning(self, event: DebugEvent) -> None:
        if event.level == "warn" and len(self.warnings) < MAX_NOTES:
            self.warnings.append(event.message)


def usage_of(result: RunResult) -> RunUsage:
    """Return what a run used; what the agent did not report stays unknown."""
    tokens, cost = result.token_usage, result.cost
    is_known = cost is not None and cost.source != "unknown"
    return RunUsage(
        duration_ms=result.duration_ms,
        model_calls=result.model_calls,
        tool_calls=result.tool_calls,
        tool_errors=result.tool_errors,
        denials=len(result.denials),
        input_tokens=None if tokens is None else tokens.input_tokens,
        output_tokens=None if tokens is None else tokens.output_tokens,
        cached_tokens=None if tokens is None else tokens.cached_tokens,
        cost_usd=cost.total_usd if cost is not None and is_known else None,
        cost_source=(cost.source or "native") if cost is not None and is_known else None,
        model=result.model,
        agent_version=result.agent_version,
    )


def end_of(result: RunResult, *, has_changes: bool) -> RunEnd:
    """Return how a run ended, for its outcome. `has_changes`: whether the workspace differs from its start."""
    return RunEnd(
        exit_reason=result.exit_reason,
        error_code=None if result.error is None else result.error.code,
        stop_reason=result.stop_reason,
        has_denials=bool(result.denials),
        has_changes=has_changes,
    )


def excerpt_of(result: RunResult) -> str:
    """Return the end of the last message."""
    return result.text[-MAX_TEXT:]
