"""Line types of omp alone that carry nothing about the run, each with the reason for ignoring it."""

from collections.abc import Mapping

_SETTING = "a setting"
_BOOKKEEPING = "bookkeeping of the agent"

IGNORED_LINES: Mapping[str, str] = {
    "advisor_cost_changed": _BOOKKEEPING,
    "advisor_yielded": _BOOKKEEPING,
    "available_commands_update": "commands for the user",
    "command_output": "the output of a command that needed no model",
    "config_update": _SETTING,
    "config_warnings_changed": _SETTING,
    "goal_updated": _BOOKKEEPING,
    "host_tool_call": "a tool of the client; its call is emitted like any other",
    "host_tool_cancel": "a tool of the client; its call is emitted like any other",
    "host_uri_cancel": "a resource of the client",
    "host_uri_request": "a resource of the client",
    "irc_message": "messages between sub-agents",
    "model_changed": _SETTING,
    "retry_fallback_succeeded": "emitted when the other model was chosen",
    "session_info_update": "the name of the session",
    "subagent_progress": "a heartbeat of a sub-agent",
    "todo_auto_clear": _BOOKKEEPING,
    "todo_reminder": "the agent reminds the model of its list",
    "tool_stream_update": "the input of a call, which streams in other lines",
    "ttsr_triggered": "a rule of the user reminds the model",
}
