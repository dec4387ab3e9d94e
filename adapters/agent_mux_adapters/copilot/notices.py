"""What the session tells beside the work of a turn: what is there, what is used, what people should know."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.facts import AgentdocRead, Fact, Ignored, Note, SessionKnown, SkillInvoked, SkillLoaded
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows, text

_FAILED = frozenset({"failed", "needs-auth"})
_BUILT_IN = "builtin"


def notice(kind: str, data: Mapping[str, Any]) -> tuple[Fact, ...] | None:
    """The facts of such an event; None when it is another one."""
    tell = _NOTICES.get(kind)
    return None if tell is None else tell(data)


def _session(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (SessionKnown(need_text(data, "sessionId"), model=text(data.get("selectedModel")) or None),)


def _skills(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    found = [row for row in rows(data.get("skills")) if row.get("enabled") is not False and text(row.get("name"))]
    loaded = tuple(SkillLoaded(text(row.get("name")), _source_of(row)) for row in found)
    return loaded or (Ignored("session.skills_loaded", "there are none"),)


def _source_of(row: Mapping[str, Any]) -> str:
    source = text(row.get("source"))
    return "built-in" if source in {"", _BUILT_IN} else source


def _skill(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (SkillInvoked(need_text(data, "name")),)


def _servers(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    failed = [row for row in rows(data.get("servers")) if text(row.get("status")) in _FAILED]
    told = tuple(_server_failed(text(row.get("name")), row) for row in failed)
    return told or (Ignored("session.mcp_servers_loaded", "those that work need no word"),)


def _server(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    if text(data.get("status")) not in _FAILED:
        return (Ignored("session.mcp_server_status_changed", "those that work need no word"),)
    return (_server_failed(need_text(data, "serverName"), data),)


def _server_failed(name: str, row: Mapping[str, Any]) -> Note:
    return Note(f"the MCP server {name} is not there ({text(row.get('status'))}): {text(row.get('error'))}", "warn")


def _lost_server(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(f"the MCP server {need_text(data, 'serverName')} is not connected any more", "warn"),)


def _notification(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    about = mapping(data.get("kind"))
    if about.get("type") == "instruction_discovered" and text(about.get("sourcePath")):
        return (AgentdocRead(text(about.get("sourcePath"))),)
    return (Ignored("system.notification", "told to the model; the event it is about is told itself"),)


def _hook(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    if data.get("success") is not False:
        return (Ignored("hook.end", "the user's own hook"),)
    why = text(mapping(data.get("error")).get("message"))
    return (Note(f"the hook {text(data.get('hookType'))} failed: {why}", "warn"),)


def _info(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    kind = text(data.get("infoType"))
    if kind in _SILENT_INFO:
        return (Ignored(f"session.info:{kind}", _SILENT_INFO[kind]),)
    return (Note(text(data.get("message"))),)


_SILENT_INFO = {
    "file_created": "the call that made the file tells it",
    "model_retry": "assistant.turn_retry tells it",
}


def _warning(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(text(data.get("message")) or "copilot warns, and says nothing more", "warn"),)


def _limits(_: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note("the session's limit of AI credits is reached", "warn"),)


def _model_lost(data: Mapping[str, Any]) -> tuple[Fact, ...]:
    return (Note(f"the model {text(data.get('previousModel'))} is not offered any more", "warn"),)


_NOTICES: Mapping[str, Callable[[Mapping[str, Any]], tuple[Fact, ...]]] = {
    "hook.end": _hook,
    "session.info": _info,
    "session.managed_settings_enforced": _warning,
    "session.mcp_server_needs_reconnect": _lost_server,
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
NOTICES = frozenset(_NOTICES)
