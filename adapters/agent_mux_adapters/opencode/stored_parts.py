"""The parts of stored messages. Those of an answer may still be written: then they are read again."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.sessions.lines import milliseconds_of
from agent_mux.sessions.store import Entry
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, text
from agent_mux_adapters.opencode.calls import Calls
from agent_mux_adapters.opencode.names import Names

Part = Mapping[str, Any]
_PROSE: dict[str, type[facts.Text] | type[facts.Thinking]] = {"text": facts.Text, "reasoning": facts.Thinking}


class StoredParts:
    """Reads the parts of answers."""

    def __init__(self) -> None:
        self._cwd = ""
        self._calls = Calls("", Names())
        self._told: set[str] = set()
        """The ids of those that will not change any more, in the answer that is still written."""

    def take_directory(self, cwd: str) -> None:
        """Where the session is at home."""
        if cwd != self._cwd:
            self._cwd, self._calls = cwd, Calls(cwd, Names())

    def told(self, info: Part, parts: Iterable[tuple[str, Part]]) -> Iterator[Entry]:
        """What the parts of this answer say that was not told yet."""
        time = mapping(info.get("time"))
        is_complete = "completed" in time
        for part_id, part in parts:
            if part_id in self._told or not (is_complete or _can_be_told(part)):
                continue
            if _state(part) != "running":
                self._told.add(part_id)
            began, ended = _times_of(part, time.get("created"))
            for fact in self._facts(part, is_summary=info.get("summary") is True):
                begins = isinstance(fact, facts.ToolReady | facts.McpBegin | facts.SubagentBegin)
                yield Entry(began if begins else ended, fact)
        if is_complete:
            self._told.clear()

    def _facts(self, part: Part, *, is_summary: bool) -> Iterable[facts.Fact]:
        kind, said = text(part.get("type")), text(part.get("text"))
        if kind == "tool":
            return self._called(part)
        if is_summary:
            return (facts.ContextCompacted(said),) if kind == "text" else ()
        if kind == "step-start":
            return (facts.StepBegin(),)
        prose = _PROSE.get(kind)
        return (prose(said),) if prose is not None and said and part.get("synthetic") is not True else ()

    def _called(self, part: Part) -> Iterable[facts.Fact]:
        try:
            told = self._calls.told(part)
        except WrongShapeError:
            return ()
        return [fact for fact in told if not isinstance(fact, facts.Ignored)]


def prompt_of(parts: Iterable[Part]) -> str | None:
    """What somebody asked for in the message with these parts; None where OpenCode wrote it itself."""
    own = [part for part in parts if part.get("synthetic") is not True and text(part.get("type")) in _ASKING]
    return "\n".join(filter(None, (text(part.get(_ASKING[part["type"]])) for part in own))) if own else None


_ASKING = {"text": "text", "subtask": "prompt", "file": ""}
"""The parts of a prompt -> where they have words."""


def _state(part: Part) -> Any:
    return mapping(part.get("state")).get("status")


def _can_be_told(part: Part) -> bool:
    """Of an answer that is still written: prose when it is complete, a tool when its input is."""
    is_prose = text(part.get("type")) in _PROSE
    return "end" in mapping(part.get("time")) if is_prose else _state(part) != "pending"


def _times_of(part: Part, created: Any) -> tuple[int | None, int | None]:
    """When it began and when it ended, as far as it says so, else when its message began."""
    time = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
    began = milliseconds_of(time.get("start")) or milliseconds_of(created)
    return began, milliseconds_of(time.get("end")) or began
