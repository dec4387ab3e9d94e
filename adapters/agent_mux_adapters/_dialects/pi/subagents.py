"""Sub-agents: the call of the main agent ends at once, and the work continues in the background (omp).

In rpc mode, if the client subscribes to them, the sub-agent's own events come as `subagent_event`. The agent injects
the report as a message for the model, `async-result`, perhaps together with others; the report ends the sub-agent.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.messages import PiMessages
from agent_mux_adapters._dialects.pi.tools import PiToolCalls
from agent_mux_adapters._dialects.pi.usage import PiUsage, cost_record, sum_records
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

Facts = tuple[facts.Fact, ...]
REPORT = "async-result"
UNSEEN_REPORT = "the agent received the report without printing it"
_RESULT = re.compile(
    r'<task-result id="(?P<id>[^"\n]{1,200})"[^>\n]{0,400}?status="(?P<status>[^"\n]{1,40})"[^>\n]{0,400}>'
    r"(?P<inner>.*?)</task-result>",
    re.DOTALL,
)
_OUTPUT = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)
_EVENT_START, _UPDATE_MARK = b'{"type":"subagent_event",', b'"event":{"type":"message_update",'
_MARK_WITHIN = 400  # the type of the inner event is within this many bytes
_IGNORED_UPDATE = facts.Ignored("subagent_event/message_update", "the whole message follows")


class _SubagentState:
    """The calls, messages and cost of one sub-agent."""

    def __init__(self, flavor: Flavor, context: CodecContext) -> None:
        self.calls = PiToolCalls(flavor, context)
        self.messages = PiMessages(self.calls)
        self.cost: CostRecord | None = None


class PiSubagents:
    """The sub-agents of a run: which are open, and what they do."""

    def __init__(self, flavor: Flavor, context: CodecContext, usage_totals: PiUsage) -> None:
        self._flavor = flavor
        self._context = context
        self._usage_totals = usage_totals
        self._jobs: dict[str, str] = {}
        """The agent's id of a job -> the id of the call that started it, until its report."""
        self._states: dict[str, _SubagentState] = {}
        self._readers: Mapping[str, Callable[[_SubagentState, Mapping[str, Any]], Facts]] = {
            "message_end": self._message_end,
            "tool_execution_start": lambda state, event: state.calls.execution_started(event),
            "tool_execution_update": lambda state, event: state.calls.execution_updated(event),
            "tool_execution_end": lambda state, event: state.calls.execution_ended(event),
        }

    # -- start and end

    def begin_background(self, call_id: str, job_id: str) -> Facts:
        """Keep a sub-agent open whose call ended while its job runs on in the background."""
        self._jobs[job_id] = call_id
        return (facts.Ignored("tool_execution_end", "the sub-agent continues in the background and reports later"),)

    def read_lifecycle(self, line: Mapping[str, Any]) -> Facts:
        """Read `subagent_lifecycle`, which connects a job with its call."""
        payload = mapping(line.get("payload"))
        name, call_id = text(payload.get("id")), text(payload.get("parentToolCallId"))
        if payload.get("status") == "started" and name and call_id:
            self._jobs.setdefault(name, call_id)
        return (facts.Ignored("subagent_lifecycle", "the call is its start, the report its end"),)

    def read_reports(self, message: Mapping[str, Any]) -> Facts:
        """Read the reports in an injected message."""
        return self._reports_in(message.get("content")) if message.get("customType") == REPORT else ()

    def read_fetched_reports(self, line: Mapping[str, Any]) -> Facts:
        """Read the reports in a `tool_execution_end`: an agent that fetches them with a tool gets none injected."""
        return self._reports_in(mapping(line.get("result")).get("content")) if self._jobs else ()

    def _reports_in(self, content: Any) -> Facts:
        emitted: list[facts.Fact] = []
        for result in _RESULT.finditer(_plain_text(content)):
            call_id = self._jobs.pop(result["id"], None)
            if call_id is not None:
                emitted.append(self._done(result["id"], call_id, result))
        return tuple(emitted)

    def close_unreported(self) -> Facts:
        """End the sub-agents without a report: the agent ended its turn, and reports that no job runs any more."""
        jobs, self._jobs = self._jobs, {}
        return tuple(
            facts.SubagentDone(call_id, UNSEEN_REPORT, cost=self._cost(name)) for name, call_id in jobs.items()
        )

    def _done(self, name: str, call_id: str, result: re.Match[str]) -> facts.Fact:
        output = _OUTPUT.search(result["inner"])
        text_shown = _decode_report((output[1] if output is not None else result["inner"]).strip())
        failed = result["status"] != "completed"
        error = (text_shown or f"the sub-agent {result['status']}") if failed else None
        return facts.SubagentDone(call_id, text_shown, error, self._cost(name))

    def _cost(self, name: str) -> CostRecord | None:
        state = self._states.get(name)
        return state.cost if state is not None else None

    # -- events inside a sub-agent

    def read_event(self, line: Mapping[str, Any]) -> Facts:
        """Read `subagent_event`, and attribute its facts to the sub-agent."""
        payload = mapping(line.get("payload"))
        name, event = text(payload.get("id")), mapping(payload.get("event"))
        kind, call_id = text(event.get("type")), self._jobs.get(text(payload.get("id")))
        reader = self._readers.get(kind)
        if reader is None or call_id is None:
            return (facts.Ignored(f"subagent_event/{kind}", "bookkeeping of a sub-agent"),)
        state = self._states.setdefault(name, _SubagentState(self._flavor, self._context))
        emitted = reader(state, event)
        return tuple(_attribute(call_id, fact) for fact in emitted) or (
            facts.Ignored(f"subagent_event/{kind}", "nothing new"),
        )

    def _message_end(self, state: _SubagentState, event: Mapping[str, Any]) -> Facts:
        message = mapping(event.get("message"))
        if message.get("role") != "assistant":
            return ()
        cost = cost_record(message.get("usage"))
        if cost is None:
            return state.messages.end(message.get("content"))
        state.cost = sum_records(state.cost, cost)
        return (*state.messages.end(message.get("content")), *self._usage_totals.record_subagent_call(cost))


def ignored_event(line: bytes) -> facts.Ignored | None:
    """Return the ignored fact for a fragment inside a sub-agent, which repeats its message; None for other lines."""
    return _IGNORED_UPDATE if line.startswith(_EVENT_START) and line.find(_UPDATE_MARK, 0, _MARK_WITHIN) > 0 else None


def _attribute(call_id: str, fact: facts.Fact) -> facts.Fact:
    # A sub-agent's cost counts for the run; an ignored line needs no frame.
    return fact if isinstance(fact, facts.RunCost | facts.Ignored) else facts.InSubagent(call_id, fact)


def _decode_report(output: str) -> str:
    """Decode a report, which is any JSON value, mostly a string."""
    if not output.startswith('"'):
        return output
    try:
        return msgspec.json.decode(output.encode("utf-8", "replace"), type=str)
    except (ValueError, RecursionError):
        return output


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content))
