"""What makes Claude Code remember a yes: rules for the session, never in the user's own settings."""

from typing import Any

from agent_mux_adapters._dialects.stream_json.approvals import PendingPermission
from agent_mux_adapters._dialects.tolerant import mapping, text


def for_this_session(ask: PendingPermission) -> list[dict[str, Any]]:
    """The narrowest rules the CLI suggests; where it suggests none, one for exactly this."""
    rules = [row for row in ask.suggestions if row.get("type") == "addRules"] or ask.suggestions
    return [{**row, "destination": "session"} for row in rules] or [_rule_for(ask)]


def _rule_for(ask: PendingPermission) -> dict[str, Any]:
    command = text(mapping(ask.input).get("command"))
    rule = {"toolName": ask.tool, **({"ruleContent": command} if command else {})}
    return {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}
