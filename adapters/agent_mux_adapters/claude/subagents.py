"""Sub-agents: delegated by a `Task` call, finished by their report, possibly turns later.

A synchronous one reports in the result of its call. The result of an asynchronous one (the default since 2.1.330) only
states that it was launched; its report is the summary of a `system/task_notification`.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.stream_json import tools
from agent_mux_adapters._dialects.stream_json.tools import ToolResultBlock
from agent_mux_adapters._dialects.tolerant import mapping, rows, text, whole

LAUNCHED = "Async agent launched"
FRAME_END = "The report follows:"
GOOD_STATUS = "completed"


class ClaudeSubagents(tools.StreamJsonSubagents):
    """The sub-agents that have not reported yet."""

    def __init__(self) -> None:
        super().__init__()
        self._asynchronous: set[str] = set()
        self._summaries: dict[str, str] = {}

    def started(self, line: Mapping[str, Any]) -> None:
        """Read `system/task_started`, which marks asynchronous sub-agents."""
        subagent_id = text(line.get("tool_use_id"))
        if line.get("is_backgrounded") is True and subagent_id in self._waiting:
            self._asynchronous.add(subagent_id)

    def notified(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Read `system/task_notification`.

        It ends an asynchronous sub-agent; of a synchronous one it is only a summary.
        """
        subagent_id, summary = text(line.get("tool_use_id")), text(line.get("summary"))
        if subagent_id not in self._waiting:
            return ()
        if subagent_id not in self._asynchronous:
            self._summaries[subagent_id] = summary
            return ()
        status = text(line.get("status"))
        self._forget(subagent_id)
        if status == GOOD_STATUS:
            return (facts.SubagentDone(subagent_id, summary),)
        return (facts.SubagentDone(subagent_id, error=summary or f"the sub-agent ended as {status or 'unknown'}"),)

    def result(self, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
        """Return the fact of a finished sub-agent from the result of its call; none if it was only launched."""
        subagent_id, extra = result.call_id, mapping(result.extra)
        if subagent_id not in self._waiting:
            return ()
        launched = extra.get("isAsync") is True or result.shown.startswith(LAUNCHED)
        if launched and not result.failed:
            self._asynchronous.add(subagent_id)
            return ()
        fallback = self._summaries.get(subagent_id, "")
        self._forget(subagent_id)
        if result.failed:
            return (facts.SubagentDone(subagent_id, error=result.error),)
        return (facts.SubagentDone(subagent_id, _report(result) or fallback),)

    def _forget(self, subagent_id: str) -> None:
        self._waiting.discard(subagent_id)
        self._asynchronous.discard(subagent_id)
        self._summaries.pop(subagent_id, None)


def _report(result: ToolResultBlock) -> str:
    """Return the sub-agent's own text, without the notes, the frame and the figures that the CLI adds."""
    extra = mapping(result.extra)
    texts = [text(block.get("text")) for block in rows(extra.get("content")) if block.get("type") == "text"]
    if texts:
        return "\n".join(texts[whole(extra.get("harnessNoteCount")) :]).strip()
    shown = result.shown.partition(FRAME_END)[2] or result.shown
    return shown.partition("\nagentId: ")[0].strip()
