"""`interaction_query`: requests that the CLI would show a person, and in print mode answers by itself.

Nobody else can answer, so a query is emitted together with its answer, as an approval that was granted or denied at
once.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.cursor import tools

Facts = tuple[facts.Fact, ...]
SUFFIX = re.compile(r"(Request|Interaction)?Query$")
_LATER = (facts.Ignored("interaction_query/request", "emitted with its answer, which the CLI gives itself"),)


class CursorQueries:
    """The queries without an answer."""

    def __init__(self) -> None:
        self.denied: set[str] = set()
        """The ids of calls that an answer denied."""
        self._open: dict[str, Mapping[str, Any]] = {}

    def read_request(self, line: Mapping[str, Any]) -> Facts:
        """Store the query of an `interaction_query/request` line. Raises `WrongShapeError`."""
        query, kind = mapping(line.get("query")), need_text(line, "query_type")
        self._open[_key(kind, query)] = mapping(query.get(kind))
        return _LATER

    def read_response(self, line: Mapping[str, Any]) -> Facts:
        """Emit the query of an `interaction_query/response` line with its answer. Raises `WrongShapeError`."""
        response, kind = mapping(line.get("response")), need_text(line, "query_type")
        key = _key(kind, response)
        arguments = mapping(self._open.pop(key, {}).get("args"))
        response_body = mapping(response.get(kind.removesuffix("Query") + "Response"))
        response_body = mapping(response_body.get("result", response_body))
        granted, reason = "approved" in response_body, text(mapping(response_body.get("rejected")).get("reason"))
        name, call_id = SUFFIX.sub("", kind), text(arguments.get("toolCallId"))
        if name in tools.ASKING:
            return (facts.Note(f"cursor answered its own {name}: {reason or 'done'}"),)
        if not granted:
            self.denied.add(call_id)
        action, detail = tools.action_of(name, arguments), tools.detail_of(name, arguments)
        risk = tools.risk_of(name, arguments)
        approval = facts.ApprovalRequested(
            key, action, detail, risk, name, call_id or None, tool_input=arguments or None
        )
        return (approval, facts.RequestResolved(key, granted=granted, reason=reason or None))


def _key(kind: str, body: Mapping[str, Any]) -> str:
    number = body.get("id")
    return f"{kind}:{number if isinstance(number, int | str) else ''}"
