"""The test kit: Qwen Code against the scripted model, in place of all ACP agents without an adapter."""

import json
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_testing.live import (
    DUMMY_KEY,
    MARK,
    SUBTASK,
    Ask,
    Delegate,
    Edit,
    Gap,
    KitContext,
    LiveKit,
    Mcp,
    OptionProbe,
    Pin,
    Read,
    Shell,
    StructuredAnswer,
    Todo,
    ToolPart,
    UnsupportedPart,
    Write,
    mentions,
)
from agent_mux_testing.model_server.script import Block, ToolUse

_MODEL = "fake-model"
_SETTINGS = {
    "model": {"generationConfig": {"modalities": {"image": True}}},
    "skills": {"disabledLevels": ["bundled"]},
    "memory": {"enableManagedAutoMemory": False},
    "ui": {"enableFollowupSuggestions": False},
}
"""Disables Qwen Code's own model calls, which no script answers, and half a megabyte of skills."""

_DENIAL = Gap("never", "a denial ends Qwen Code's turn")
_SILENCE = Gap("not_yet", "Qwen Code retries a failed call without a report, and keeps the earlier text")
_PATIENCE = Gap("not_yet", "Qwen Code retries a failed call for minutes without a report")
_NO_STOP_REASON = Gap("not_yet", "Qwen Code reports the stop reason `end_turn` whatever ended the answer")
_GAPS = {
    "next_turn_uses_another_model": Gap("never", "the kit knows no second model"),
    **dict.fromkeys(
        (
            "allowed_tool_runs_in_mode_deny",
            "disallowed_tool_does_not_run_in_mode_yolo",
            "file_in_a_further_directory_is_read_unasked",
            "plan_mode_changes_nothing",
        ),
        Gap("never", "ACP has no such setting"),
    ),
    **dict.fromkeys(
        (
            "stored_session/two_way",
            "stored_session_resumed/two_way",
            "stored_session_forked",
            "stored_session_is_renamed_and_deleted",
            "stored_session_is_rewound",
        ),
        Gap("never", "it runs any program, whose session store is unknown"),
    ),
    **dict.fromkeys(
        (
            "commands",
            "home_credentials",
            "home_mcp_servers_added_by_amux",
            "home_mcp_servers_added_by_the_agent",
            "home_model",
            "home_plugins",
            "home_setup_commands",
            "home_host_variables",
            "home_skills",
            "home_subagents",
        ),
        Gap("never", "it runs any program, whose installation is unknown"),
    ),
    "policy_decides_about_read_files": Gap("not_yet", "it reads without asking; reads are reported, not prevented"),
    "approval_left_to_its_deadline": _DENIAL,
    "approvals_answered_in_reverse_order": Gap("never", "Qwen Code asks for one call after the other"),
    "cut_answer/two_way": _NO_STOP_REASON,
    "filtered_answer/two_way": _NO_STOP_REASON,
    "failing_provider/two_way": _PATIENCE,
    "deny": _DENIAL,
    "deny_reason_reaches_the_model": _DENIAL,
    "question_declined": _DENIAL,
    "cli_denies_without_a_terminal": _DENIAL,
    "rate_limited_then_recovers/two_way": _SILENCE,
    "dropped_stream_then_recovers/two_way": _SILENCE,
    "rate_limited_permanently": _PATIENCE,
    "server_error_permanently/two_way": _PATIENCE,
    "server_error_after_a_tool": _PATIENCE,
    "steer": Gap("never", "ACP has no message for a turn that runs"),
    "fork": Gap("not_yet", "Qwen Code does not offer `session/fork`"),
    "no_session": Gap("never", "ACP cannot ask an agent to leave no session behind"),
    "output_schema": Gap("never", "ACP has no output schema"),
    "system_prompt_replaced": Gap("never", "ACP has no system prompt: it is put before the first prompt"),
    "model_name": Gap("never", "Qwen Code takes only the models that it is configured with"),
    "thinking_effort": Gap("not_yet", "Qwen Code offers no effort of thinking over ACP"),
    "tools_run_concurrently": Gap("never", "Qwen Code runs commands one after the other"),
}


def environment(context: KitContext) -> dict[str, str]:
    """Return the complete environment of Qwen Code."""
    context.write(".qwen/settings.json", json.dumps(_SETTINGS))
    return context.minimal(
        OPENAI_API_KEY=DUMMY_KEY,
        OPENAI_BASE_URL=f"{context.url}/v1",
        OPENAI_MODEL=_MODEL,
    )


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: PLR0911  # one line for each part
    """Convert a part of a script to a block, which the model server sends as chunks of a chat completion."""
    match part:
        case Shell(command):
            return ToolUse("run_shell_command", {"command": command, "is_background": False, "description": "run it"})
        case Write(name, content):
            return ToolUse("write_file", {"file_path": str(workspace / name), "content": content})
        case Edit(name, old, new):
            where = {"file_path": str(workspace / name)}
            return ToolUse("edit", {**where, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("read_file", {"file_path": str(workspace / name)})
        case Mcp(tool, arguments, server):
            return ToolUse(f"mcp__{server}__{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse("ask_user_question", {"questions": [_question(question, options)]})
        case Todo(items):
            return ToolUse("todo_write", {"todos": [_todo(index, item) for index, item in enumerate(items)]})
        case Delegate(task):
            kind = {"subagent_type": "general-purpose", "run_in_background": False}
            return ToolUse("agent", {"description": "A task", "prompt": f"{SUBTASK} {task}", **kind})
        case StructuredAnswer():
            raise UnsupportedPart("ACP has no output schema")


def _question(question: str, options: tuple[str, ...]) -> dict[str, object]:
    choices = [{"label": option, "description": option} for option in options]
    return {"question": question, "header": "Pick", "options": choices, "multiSelect": False}


def _todo(index: int, item: str) -> dict[str, str]:
    return {"id": str(index), "content": item, "status": "pending" if index else "in_progress"}


KIT = LiveKit(
    agent="acp",
    patience=200.0,  # it repeats a call for two minutes when the connection is refused
    pins=(
        Pin(
            version="0.24.4",
            npm=("@qwen-code/qwen-code@0.24.4",),
            program="node_modules/.bin/qwen",
            path=("node_modules/.bin",),
            needs=("node-24", "ripgrep"),
        ),
    ),
    environment=environment,
    arguments=("--acp", "--auth-type=openai"),
    api="chat",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=120, output_tokens=12, thinking_tokens=5, cached_tokens=30, source="unknown"
    ),
    ways=("two_way",),
    once=("--auth-type=openai",),
    baseline=Path(__file__).with_name("baselines") / "acp.json",
    probes={"extra_args": OptionProbe(value=[f"--append-system-prompt={MARK}"], is_seen=mentions(MARK))},
    gaps=_GAPS,
)
