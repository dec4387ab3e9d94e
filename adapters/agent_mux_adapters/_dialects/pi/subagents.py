"""Sub-agents: a call of the main agent that ends at once, while the work goes on in the background (omp).

What happens inside comes as `subagent_event`, if the client asked for it (rpc mode). The report is given to the model
as a message that the agent injects, `async-result`, perhaps together with others; that is the end for us, too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux.adapter import CodecContext
from agent_mux.events.cost import CostRecord
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.messages import Messages
from agent_mux_adapters._dialects.pi.tools import ToolCalls
from agent_mux_adapters._dialects.pi.usage import Meter, record_of, sum_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

Facts = tuple[facts.Fact, ...]
REPORT = "async-result"
UNHEARD = "its report went to the agent alone"
_RESULT = re.compile(
    r'<task-result id="(?P<id>[^"\n]{1,200})"[^>\n]{0,400}?status="(?P<status>[^"\n]{1,40})"[^>\n]{0,400}>'
    r"(?P<inner>.*?)</task-result>",
    re.DOTALL,
)
_OUTPUT = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)
_START, _UPDATE = b'{"type":"subagent_event",', b'"event":{"type":"message_update",'
_HEAD = 400  # bytes of a line in which its kind has to stand
_SILENT = facts.Ignored("subagent_event/message_update", "the whole message follows")


class _Inside:
    """What one sub-agent does."""

    def __init__(self, flavor: Flavor, context: CodecContext) -> None:
        self.calls = ToolCalls(flavor, context)
        self.messages = Messages(self.calls)
        self.cost: CostRecord | None = None


class Delegation:
    """The sub-agents of a run."""

    def __init__(self, flavor: Flavor, context: CodecContext, meter: Meter) -> None:
        self._flavor = flavor
        self._context = context
        self._meter = meter
        self._jobs: dict[str, str] = {}
        """The agent's name for the work -> the call that began it, while it has not reported."""
        self._inside: dict[str, _Inside] = {}
        self._readers: Mapping[str, Callable[[_Inside, Mapping[str, Any]], Facts]] = {
            "message_end": self._message_end,
            "tool_execution_start": lambda inside, event: inside.calls.started(event),
            "tool_execution_update": lambda inside, event: inside.calls.updated(event),
            "tool_execution_end": lambda inside, event: inside.calls.ended(event),
        }

    # -- its beginning and its end

    def goes_on(self, call_id: str, job_id: str) -> Facts:
        """The call ended, the work did not."""
        self._jobs[job_id] = call_id
        return (facts.Ignored("tool_execution_end", "the sub-agent works in the background, and reports later"),)

    def lifecycle(self, line: Mapping[str, Any]) -> Facts:
        """`subagent_lifecycle`."""
        payload = mapping(line.get("payload"))
        name, call_id = text(payload.get("id")), text(payload.get("parentToolCallId"))
        if payload.get("status") == "started" and name and call_id:
            self._jobs.setdefault(name, call_id)
        return (facts.Ignored("subagent_lifecycle", "its call tells when it began, its report when it ended"),)

    def reported(self, message: Mapping[str, Any]) -> Facts:
        """An injected message: the reports in it."""
        return self._reports_in(message.get("content")) if message.get("customType") == REPORT else ()

    def fetched(self, line: Mapping[str, Any]) -> Facts:
        """`tool_execution_end`: the agent may look for the reports itself, with a tool; then nothing is injected."""
        return self._reports_in(mapping(line.get("result")).get("content")) if self._jobs else ()

    def _reports_in(self, content: Any) -> Facts:
        told: list[facts.Fact] = []
        for result in _RESULT.finditer(_plain(content)):
            call_id = self._jobs.pop(result["id"], None)
            if call_id is not None:
                told.append(self._done(result["id"], call_id, result))
        return tuple(told)

    def over(self) -> Facts:
        """The agent hands back and says that nothing works any more: whoever is open has reported unheard."""
        jobs, self._jobs = self._jobs, {}
        return tuple(facts.SubagentDone(call_id, UNHEARD, cost=self._cost(name)) for name, call_id in jobs.items())

    def _done(self, name: str, call_id: str, result: re.Match[str]) -> facts.Fact:
        output = _OUTPUT.search(result["inner"])
        said = _words((output[1] if output is not None else result["inner"]).strip())
        failed = result["status"] != "completed"
        error = (said or f"the sub-agent {result['status']}") if failed else None
        return facts.SubagentDone(call_id, said, error, self._cost(name))

    def _cost(self, name: str) -> CostRecord | None:
        inside = self._inside.get(name)
        return inside.cost if inside is not None else None

    # -- what it does

    def event(self, line: Mapping[str, Any]) -> Facts:
        """`subagent_event`."""
        payload = mapping(line.get("payload"))
        name, event = text(payload.get("id")), mapping(payload.get("event"))
        kind, call_id = text(event.get("type")), self._jobs.get(text(payload.get("id")))
        reader = self._readers.get(kind)
        if reader is None or call_id is None:
            return (facts.Ignored(f"subagent_event/{kind}", "bookkeeping of a sub-agent"),)
        inside = self._inside.setdefault(name, _Inside(self._flavor, self._context))
        told = reader(inside, event)
        return tuple(_wrapped(call_id, fact) for fact in told) or (
            facts.Ignored(f"subagent_event/{kind}", "it says nothing new"),
        )

    def _message_end(self, inside: _Inside, event: Mapping[str, Any]) -> Facts:
        message = mapping(event.get("message"))
        if message.get("role") != "assistant":
            return ()
        spent = record_of(message.get("usage"))
        if spent is None:
            return inside.messages.end(message.get("content"))
        inside.cost = sum_of(inside.cost, spent)
        return (*inside.messages.end(message.get("content")), *self._meter.called_inside(spent))


def silent_event(line: bytes) -> facts.Ignored | None:
    """A fragment inside of a sub-agent, which repeats the whole message so far; None for any other line."""
    return _SILENT if line.startswith(_START) and line.find(_UPDATE, 0, _HEAD) > 0 else None


def _wrapped(call_id: str, fact: facts.Fact) -> facts.Fact:
    # What it cost is part of what the run cost; that nothing is said needs no frame.
    return fact if isinstance(fact, facts.RunCost | facts.Ignored) else facts.InSubagent(call_id, fact)


def _words(output: str) -> str:
    """A report is any JSON value; mostly it is a text."""
    if not output.startswith('"'):
        return output
    try:
        return msgspec.json.decode(output.encode("utf-8", "replace"), type=str)
    except (ValueError, RecursionError):
        return output


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block.get("text")) for block in rows(content))
