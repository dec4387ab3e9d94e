"""Session events beside the work of a turn: skills, MCP servers, documents, warnings, and the ignored events.

The tables here and the handlers of `reader.py` together cover all events in `schemas/session-events.schema.json` of
1.0.102. Events of the type `model.` plus the `kind` in their data (`model.turn_started`,
`model.messages_snapshot`...) are not in the schema: `headless` prints them as copies of internal state.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk.facts import AgentdocRead, Fact, Ignored, Note, SessionKnown, SkillInvoked, SkillLoaded
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows, text, version_fact

_FAILED = frozenset({"failed", "needs-auth"})
_BUILT_IN = "builtin"


def read_notice(kind: str, data: Mapping[str, Any]) -> tuple[Fact, ...] | None:
    """Return the facts of a notice; None for any other event."""
    handler = NOTICES.get(kind)
    return None if handler is None else handler(data)


def _session(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    known = SessionKnown(need_text(data, "sessionId"), model=text(data.get("selectedModel")) or None)
    return *version_fact(data.get("copilotVersion")), known


def _skills(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    found = [row for row in rows(data.get("skills")) if row.get("enabled") is not False and text(row.get("name"))]
    loaded = tuple(SkillLoaded(text(row.get("name")), _source_of(row)) for row in found)
    return loaded or (Ignored("session.skills_loaded", "no skills"),)


def _source_of(row: Mapping[str, Any]) -> str:
    source = text(row.get("source"))
    return "built-in" if source in {"", _BUILT_IN} else source


def _skill(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (SkillInvoked(need_text(data, "name")),)


def _servers(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    failed = [row for row in rows(data.get("servers")) if text(row.get("status")) in _FAILED]
    notes = tuple(_server_failed(text(row.get("name")), row) for row in failed)
    return notes or (Ignored("session.mcp_servers_loaded", "no server failed"),)


def _server(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    if text(data.get("status")) not in _FAILED:
        return (Ignored("session.mcp_server_status_changed", "no server failed"),)
    return (_server_failed(need_text(data, "serverName"), data),)


def _server_failed(name: str, row: Mapping[str, Any]) -> Note:
    return Note(f"the MCP server {name} is not available ({text(row.get('status'))}): {text(row.get('error'))}", "warn")


def _server_lost(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(f"the MCP server {need_text(data, 'serverName')} is no longer connected", "warn"),)


def _notification(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    kind = mapping(data.get("kind"))
    if kind.get("type") == "instruction_discovered" and text(kind.get("sourcePath")):
        return (AgentdocRead(text(kind.get("sourcePath"))),)
    return (Ignored("system.notification", "a text for the model about another event"),)


def _hook(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    if data.get("success") is not False:
        return (Ignored("hook.end", "the user's own hook"),)
    error = text(mapping(data.get("error")).get("message"))
    return (Note(f"the hook {text(data.get('hookType'))} failed: {error}", "warn"),)


def _info(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    kind = text(data.get("infoType"))
    if kind in _IGNORED_INFO:
        return (Ignored(f"session.info:{kind}", _IGNORED_INFO[kind]),)
    return (Note(text(data.get("message"))),)


_IGNORED_INFO = {
    "file_created": "the call that created the file reports it",
    "model_retry": "assistant.turn_retry reports it",
}


def _warning(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(text(data.get("message")) or "copilot printed a warning without a message", "warn"),)


def _limits(_: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note("the session has reached its limit of AI credits", "warn"),)


def _model_lost(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(f"the model {text(data.get('previousModel'))} is no longer offered", "warn"),)


NOTICES: Mapping[str, Callable[[Mapping[str, Any]], tuple[Fact, ...]]] = {
    "hook.end": _hook,
    "session.info": _info,
    "session.managed_settings_enforced": _warning,
    "session.mcp_server_needs_reconnect": _server_lost,
    "session.mcp_server_status_changed": _server,
    "session.mcp_servers_loaded": _servers,
    "session.model_deselected": _model_lost,
    "session.skills_loaded": _skills,
    "session.start": _session,
    "session.warning": _warning,
    "session_limits_exhausted.requested": _limits,
    "skill.invoked": _skill,
    "skill.invoked_ref": _skill,
    "system.notification": _notification,
}

# -- events without facts

INTERNAL_COPY = "a copy of internal state; session events report the same"

_CANVAS = "a panel of a graphical client"
_FUSION = "a phase of a turn of several models; its message has its own event"
_HISTORIC = "only in sessions of older versions"
_LOGIN = "a login of an MCP server, for clients with a browser"
_NOT_OFFERED = "a feature of other clients"
_OTHERS_LIST = "a changed list that is not used here"
_RECORD = "kept for the session's file"
_SCHEDULE = "the user's own schedule"
_SETTINGS = "settings of the user or the organization"
_TELEMETRY = "telemetry"
_UPDATE = "a hint to read something again"
_WORKFLOW = "a workflow; its agents have their own events"

IGNORED: Mapping[str, str] = {
    "abort": "assistant.idle reports that the turn was aborted",
    "agent.interrupted": "assistant.idle reports that the turn was aborted",
    "assistant.fusion_phase_activity": _FUSION,
    "assistant.fusion_phase_completed": _FUSION,
    "assistant.fusion_phase_failed": _FUSION,
    "assistant.fusion_phase_started": _FUSION,
    "assistant.intent": "a title for the current work",
    "assistant.server_tool_progress": "progress of a search by the provider",
    "assistant.streaming_delta": "a byte count",
    "auto_mode_switch.completed": _NOT_OFFERED,
    "auto_mode_switch.requested": _NOT_OFFERED,
    "capabilities.changed": "what the client can show",
    "command.completed": _NOT_OFFERED,
    "command.execute": _NOT_OFFERED,
    "command.queued": _NOT_OFFERED,
    "commands.changed": _OTHERS_LIST,
    "elicitation.completed": _NOT_OFFERED,
    "elicitation.requested": _NOT_OFFERED,
    "exit_plan_mode.completed": _NOT_OFFERED,
    "exit_plan_mode.requested": _NOT_OFFERED,
    "external_tool.completed": _NOT_OFFERED,
    "external_tool.requested": _NOT_OFFERED,
    "hook.progress": "progress of the user's own hook",
    "hook.start": "the user's own hook",
    "human_response.recorded": _RECORD,
    "mcp.headers_refresh_completed": _LOGIN,
    "mcp.headers_refresh_required": _LOGIN,
    "mcp.oauth_completed": _LOGIN,
    "mcp.oauth_recovery_completed": _LOGIN,
    "mcp.oauth_required": _LOGIN,
    "mcp.prompts.list_changed": _OTHERS_LIST,
    "mcp.resources.list_changed": _OTHERS_LIST,
    "mcp.tools.list_changed": _OTHERS_LIST,
    "mcp_app.tool_call_complete": _CANVAS,
    "model.call_final_result": _TELEMETRY,
    "model.call_finished": "the message or the failure has its own event",
    "pending_messages.modified": _UPDATE,
    "permission.assentDetected": _HISTORIC,
    "permission.carriedForward": _HISTORIC,
    "permission.contextualAuthorization": _HISTORIC,
    "permission.messageAuthorization": _HISTORIC,
    "permission.messageAuthorizationDegraded": _HISTORIC,
    "permission.messageAuthorizationRead": _HISTORIC,
    "prompt_cache_break": _TELEMETRY,
    "sampling.completed": _NOT_OFFERED,
    "sampling.requested": _NOT_OFFERED,
    "sandbox.decision": "whether the command is in a sandbox",
    "session.auto_mode_resolved": "how the model was chosen",
    "session.auto_tier_recommendation": _SETTINGS,
    "session.auto_tier_switch_failed": _SETTINGS,
    "session.autopilot_objective_changed": _RECORD,
    "session.autopilot_stopped": "assistant.idle ends each turn of the autopilot",
    "session.background_tasks_changed": _UPDATE,
    "session.binary_asset": _RECORD,
    "session.canvas.closed": _CANVAS,
    "session.canvas.opened": _CANVAS,
    "session.canvas.recorded": _CANVAS,
    "session.canvas.registry_changed": _CANVAS,
    "session.canvas.removed": _CANVAS,
    "session.canvas.unavailable": _CANVAS,
    "session.compaction_start": "reported on completion",
    "session.completion_receipt": _RECORD,
    "session.context_changed": "where the project's git repository is",
    "session.context_cleared": "an action of the client",
    "session.custom_agents_updated": _OTHERS_LIST,
    "session.custom_notification": "an event of an extension",
    "session.extensions.attachments_pushed": "an event of an extension",
    "session.extensions_loaded": _OTHERS_LIST,
    "session.fusion_change_checkpoint": _FUSION,
    "session.fusion_commit_started": _FUSION,
    "session.fusion_completed": _FUSION,
    "session.fusion_handoff": _FUSION,
    "session.fusion_resolved": _FUSION,
    "session.fusion_route_failed": _FUSION,
    "session.fusion_route_started": _FUSION,
    "session.handoff": "the session came from elsewhere",
    "session.indexed_search": _TELEMETRY,
    "session.managed_plugin_progress": _SETTINGS,
    "session.managed_settings_resolved": _SETTINGS,
    "session.mcp_server_removed": _OTHERS_LIST,
    "session.mcp_server_tools_loaded": _OTHERS_LIST,
    "session.memory_changed": _UPDATE,
    "session.mode_changed": _SETTINGS,
    "session.mode_notice_delivered": _RECORD,
    "session.model_change": "messages name the model",
    "session.permission_recovery": "the approvals report it",
    "session.permissions_changed": "the result of our request",
    "session.plan_changed": _UPDATE,
    "session.quota_observation": _TELEMETRY,
    "session.remote_steerable_changed": _SETTINGS,
    "session.request_body_compression_disabled": _RECORD,
    "session.resume": "the response to our request reports it",
    "session.schedule_cancelled": _SCHEDULE,
    "session.schedule_created": _SCHEDULE,
    "session.schedule_rearmed": _SCHEDULE,
    "session.session_limits_changed": _SETTINGS,
    "session.shutdown": "totals of the session; each model call was reported",
    "session.snapshot_rewind": "an action of the client",
    "session.task_complete": "the call of the tool is reported",
    "session.title_changed": "the session's title",
    "session.todos_changed": _UPDATE,
    "session.tools_updated": _OTHERS_LIST,
    "session.usage_checkpoint": _RECORD,
    "session.usage_record": _RECORD,
    "session.workspace_file_changed": "a file of the session's own folder",
    "session_limits_exhausted.completed": _NOT_OFFERED,
    "skill.context_delivered": "text of a skill for the model",
    "skill.context_delivered_ref": _RECORD,
    "subagent.configured": "the model of a sub-agent",
    "subagent.deselected": "the user's choice of an agent",
    "subagent.selected": "the user's choice of an agent",
    "system.message": "the instructions of the model",
    "tool.execution_partial_result": "repeats tool.shell_output",
    "tool.execution_progress": "progress of a tool",
    "tool.user_requested": "tool.execution_start reports it",
    "tool_search.activated": _RECORD,
    "ui.ephemeral_query": _NOT_OFFERED,
    "user_input.completed": "reported when the answer is given",
    "workflow.run_settled": _WORKFLOW,
    "workflow.run_started": _WORKFLOW,
    "workflow.run_updated": _WORKFLOW,
}
"""Ignored session events, and why."""
