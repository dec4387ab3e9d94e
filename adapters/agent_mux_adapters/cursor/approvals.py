"""`interaction_query`: what the CLI would ask a person. In print mode it answers by itself, with the next lines.

Nobody can answer instead, so a query is told with its answer: an approval that was granted or denied at once.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.cursor import tools

Facts = tuple[facts.Fact, ...]
SUFFIX = re.compile(r"(Request|Interaction)?Query$")
_LATER = (facts.Ignored("interaction_query/request", "told with its answer, which the CLI gives itself"),)


class CursorQueries:
    """The queries that have no answer yet."""

    def __init__(self) -> None:
        self.denied: set[str] = set()
        """The calls that the answers denied."""
        self._open: dict[str, Mapping[str, Any]] = {}

    def asked(self, line: Mapping[str, Any]) -> Facts:
        """`interaction_query/request`. Raises `WrongShapeError`."""
        query, kind = mapping(line.get("query")), need_text(line, "query_type")
        self._open[_key(kind, query)] = mapping(query.get(kind))
        return _LATER

    def answered(self, line: Mapping[str, Any]) -> Facts:
        """`interaction_query/response`. Raises `WrongShapeError`."""
        response, kind = mapping(line.get("response")), need_text(line, "query_type")
        key = _key(kind, response)
        arguments = mapping(self._open.pop(key, {}).get("args"))
        said = mapping(response.get(kind.removesuffix("Query") + "Response"))
        said = mapping(said.get("result", said))
        granted, reason = "approved" in said, text(mapping(said.get("rejected")).get("reason"))
        name, call_id = SUFFIX.sub("", kind), text(arguments.get("toolCallId"))
        if name in tools.ASKING:
            return (facts.Note(f"cursor answered its own {name}: {reason or 'done'}"),)
        if not granted:
            self.denied.add(call_id)
        action, detail = tools.action_of(name, arguments), tools.detail_of(name, arguments)
        asked = facts.ApprovalAsked(key, action, detail, tools.risk_of(name, arguments), name, call_id or None)
        return (asked, facts.RequestSettled(key, granted=granted, reason=reason or None))


def _key(kind: str, told: Mapping[str, Any]) -> str:
    number = told.get("id")
    return f"{kind}:{number if isinstance(number, int | str) else ''}"
