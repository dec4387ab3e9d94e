"""The `system` lines that do not depend on earlier lines: each has a function, or a reason to be ignored."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.tolerant import mapping, need_text, optional_whole, rows, text, whole
from agent_mux_adapters.claude.outcome import is_limited
from agent_mux_adapters.claude.tools import action_of, risk_of

Facts = tuple[facts.Fact, ...]


def loaded(line: Mapping[str, Any]) -> Facts:
    """Return the plugins, skills and missing MCP servers that `system/init` lists."""
    plugins = [
        facts.PluginLoaded(text(row.get("source")) or text(row.get("name")), text(row.get("name")))
        for row in rows(line.get("plugins"))
    ]
    skills = line.get("skills")
    names = [name for name in skills if isinstance(name, str)] if isinstance(skills, list) else []
    return (*plugins, *(facts.SkillLoaded(name, _source_of(name)) for name in names), *_missing_servers(line))


def _source_of(skill: str) -> str:
    plugin, separator, _ = skill.partition(":")
    return f"plugin {plugin}" if separator else "built-in or local"


def _missing_servers(line: Mapping[str, Any]) -> list[facts.Fact]:
    return [
        facts.Note(f"the MCP server {text(row.get('name'))} is not available: {text(row.get('status'))}", "warn")
        for row in rows(line.get("mcp_servers"))
        if text(row.get("status")) in {"failed", "needs-auth"}
    ]


def _api_retry(line: Mapping[str, Any]) -> Facts:
    status, error = optional_whole(line.get("error_status")), text(line.get("error"))
    delay = whole(line.get("retry_delay_ms"))
    reason = f"{error or 'unknown'} ({'no answer' if status is None else f'HTTP {status}'})"
    retrying = facts.Retrying(whole(line.get("attempt")), whole(line.get("max_retries")), reason, delay)
    return (facts.RateLimited(delay), retrying) if is_limited(error, status) else (retrying,)


def _permission_denied(line: Mapping[str, Any]) -> Facts:
    """Return an approval that was denied at once, for a tool that a rule or the mode refused."""
    call_id, tool = need_text(line, "tool_use_id"), need_text(line, "tool_name")
    message = text(line.get("message")) or text(line.get("decision_reason"))
    asked = facts.ApprovalRequested(f"denied:{call_id}", action_of(tool), message, risk_of(tool, {}), tool, call_id)
    return (asked, facts.RequestResolved(asked.request_id, granted=False, reason=message or None))


def _hook_response(line: Mapping[str, Any]) -> Facts:
    if line.get("outcome") == "success":
        return ()
    message = text(line.get("stderr")) or text(line.get("output")) or text(line.get("outcome"))
    return (facts.Note(f"the hook {text(line.get('hook_name'))} failed: {message}", "warn"),)


def _warning(line: Mapping[str, Any]) -> Facts:
    return (facts.Note(_message_of(line), "warn"),)


def _notice(line: Mapping[str, Any]) -> Facts:
    return (facts.Note(_message_of(line), "warn" if text(line.get("level")) in {"warning", "error"} else "info"),)


def _local_output(line: Mapping[str, Any]) -> Facts:
    return (facts.WholeText(text(line.get("content"))),)


def _message_of(line: Mapping[str, Any]) -> str:
    candidates = (text(line.get(name)) for name in ("content", "text", "message"))
    return next((message for message in candidates if message), f"system/{text(line.get('subtype'))}")


MAPPED: Mapping[str, Callable[[Mapping[str, Any]], Facts]] = {
    "api_retry": _api_retry,
    "hook_response": _hook_response,
    "informational": _notice,
    "instruction_size_warning": _warning,
    "local_command_output": _local_output,
    "model_consent_fallback": _warning,
    "model_fallback": _warning,
    "model_refusal_fallback": _warning,
    "model_refusal_no_fallback": _warning,
    "notification": _notice,
    "permission_denied": _permission_denied,
    "session_writes_lost": _warning,
}
"""The functions by subtype. A line for which one returns no facts is ignored."""

IGNORED: Mapping[str, str] = {
    "status": "the permission mode and the stages of a compaction are not events",
    "thinking_tokens": "an estimate; the model's own count follows",
    "task_progress": "the tools of a sub-agent show its progress",
    "task_updated": "its end is reported by task_notification or the result",
    "task_summary": "a progress line for a screen",
    "hook_started": "its response has more details",
    "hook_progress": "its response has more details",
    "session_title_changed": "a name for a list of sessions",
    "session_metadata": "bookkeeping of the session store",
    "files_persisted": "bookkeeping of the session store",
    "file_snapshot": "bookkeeping of the session store",
    "commands_changed": "slash commands are not offered",
    "plugin_install": "installation progress",
    "elicitation_complete": "the request itself is emitted",
    "control_request_progress": "the response has more details",
    "memory_recall": "internal context of the agent",
    "memory_saved": "internal context of the agent",
    "post_turn_summary": "a summary of emitted events",
    "turn_duration": "times are measured",
    "per_turn_effort_changed": "a setting",
    "permission_check_status": "the request itself is emitted",
    "vcs_state_changed": "a display matter",
    "shell_cwd": "a display matter",
    "worker_shutting_down": "the exit of the process shows it",
}
SCREEN_PREFIX = "ui_"
SCREEN_REASON = "for a screen, not about the run"


def read_system(subtype: str, line: Mapping[str, Any]) -> Facts | None:
    """Return the facts of a `system` line; None when its subtype is unknown."""
    reader = MAPPED.get(subtype)
    if reader is not None:
        return reader(line) or (facts.Ignored(f"system/{subtype}", "succeeded"),)
    reason = IGNORED.get(subtype) or (SCREEN_REASON if subtype.startswith(SCREEN_PREFIX) else "")
    return (facts.Ignored(f"system/{subtype}", reason),) if reason else None


SUMMARY_START = "Summary:\n"
SUMMARY_END = "\n\nIf you need specific details from before compaction"


def compacted(line: Mapping[str, Any], injected: str) -> facts.ContextCompacted:
    """Return the compaction that a `system/compact_boundary` reports.

    `injected` is the text that the CLI adds after it, with the summary.
    """
    metadata = mapping(line.get("compact_metadata"))
    before, after = whole(metadata.get("pre_tokens")), whole(metadata.get("post_tokens"))
    summary = injected.partition(SUMMARY_START)[2].partition(SUMMARY_END)[0].strip()
    fallback = f"{text(metadata.get('trigger')) or 'automatic'} compaction: {before} tokens before, {after} after"
    return facts.ContextCompacted(summary or fallback, max(before - after, 0))
