"""The kit that drives the real OpenClaw offline: installation, environment, tool calls and gaps."""

import json
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_adapters.openclaw.tools import CATALOG_TOOL
from agent_mux_testing.live import (
    DUMMY_KEY,
    Edit,
    Gap,
    InstallationProbes,
    KitContext,
    LiveKit,
    Mcp,
    OptionProbe,
    Pin,
    Read,
    Shell,
    ToolPart,
    UnsupportedPart,
    Write,
    has_field,
    offers,
)
from agent_mux_testing.model_server.script import Block, ToolUse

_CONFIG = ".openclaw/openclaw.json"
_PRICES = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
"""USD for a million tokens, so that OpenClaw reports a cost."""


def _environment(context: KitContext) -> dict[str, str]:
    model = {
        "id": "scripted",
        "name": "Scripted",
        "reasoning": True,
        "input": ["text", "image"],
        "cost": _PRICES,
        "contextWindow": 200_000,
        "maxTokens": 8192,
    }
    models = [model, {**model, "id": "other", "name": "Another"}]
    provider = {"baseUrl": "${SCRIPTED_URL}", "apiKey": DUMMY_KEY, "api": "anthropic-messages", "models": models}
    config = {
        "models": {"providers": {"scripted": provider}},
        "agents": {"defaults": {"model": {"primary": "scripted/scripted"}}},
    }
    if not (context.home / _CONFIG).exists():  # keep the changes of a scenario
        context.write(_CONFIG, json.dumps(config))
    return context.minimal(OPENCLAW_NO_AUTO_UPDATE="1", NO_COLOR="1", SCRIPTED_URL=context.url)


def _format_tool_call(part: ToolPart, workspace: Path) -> Block:
    match part:
        case Shell(command):
            return ToolUse("exec", {"command": command})
        case Write(name, content):
            return ToolUse("write", {"path": str(workspace / name), "content": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"path": str(workspace / name), "edits": [{"oldText": old, "newText": new}]})
        case Read(name):
            return ToolUse("read", {"path": str(workspace / name)})
        case Mcp(tool, arguments, server):
            # MCP tools are not in the model's list, but in a catalog.
            return ToolUse(CATALOG_TOOL, {"id": f"{server}__{tool}", "args": dict(arguments)})
    raise UnsupportedPart(f"openclaw has no tool for {type(part).__name__} in these runs")


def _plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Write a folder with a plugin."""
    description = {"version": "1.2.0", "description": "A demo"}
    manifest = {"id": "demo", "name": "Demo", **description, "configSchema": {"type": "object", "properties": {}}}
    package = {"name": "demo", **description, "type": "module", "openclaw": {"extensions": ["./index.js"]}}
    directory.mkdir()
    (directory / "openclaw.plugin.json").write_text(json.dumps(manifest), "utf-8")
    (directory / "package.json").write_text(json.dumps(package), "utf-8")
    (directory / "index.js").write_text('export default { id: "demo", register() {} };\n', "utf-8")
    return (), str(directory), "demo"


KIT = LiveKit(
    agent="openclaw",
    pins=(
        Pin(
            version="2026.9.6",
            npm=("openclaw@2026.9.6",),
            program="node_modules/openclaw/openclaw.mjs",
            needs=("node-24",),
        ),
    ),
    environment=_environment,
    api="messages",
    format_tool_call=_format_tool_call,
    per_call=CostRecord(
        total_usd=0.0,
        input_tokens=100,
        output_tokens=12,
        cached_tokens=30,
        cache_creation_tokens=20,
        source="native",
    ),
    patience=240.0,  # it starts a gateway first: 10 s on an idle machine, 80 s on a busy one
    once=("agent", "exec"),
    help=(("agent", "exec", "--help"), ("acp", "--help"), ("gateway", "run", "--help")),
    baseline=Path(__file__).with_name("baselines") / "openclaw.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, arguments: (
            "mcp",
            "add",
            name,
            f"--command={program}",
            *(f"--arg={argument}" for argument in arguments),
        ),
        report_login=("models", "status", "--check"),
        write_plugin=_plugin,
        model="scripted/other",
    ),
    probes={
        "extra_args": OptionProbe(value=["--local-model-lean"], is_seen=offers("exec", but_not="sessions_spawn")),
        # It adds the budget of thinking, here 2,048 tokens.
        "native_options": OptionProbe(
            value={"agents.defaults.params": {"maxTokens": 1234}},
            options={"thinking_effort": "low"},
            is_seen=has_field("max_tokens", 3282),
        ),
        "thinking_override": OptionProbe(value={"level": "low"}, is_seen=has_field("thinking.budget_tokens", 2048)),
    },
    gaps={
        "key_in_a_command_is_hidden_and_used": Gap("never", "OpenClaw shortens keys in commands and refuses them"),
        "run_enters_plan_mode_and_leaves_it": Gap("never", "OpenClaw has no plan mode in its protocol"),
        "mode_prompt_after_yolo_asks": Gap("never", "OpenClaw is started so that it asks, or not"),
        "next_turn_uses_another_model": Gap("not_impl", "agent-mux sends OpenClaw no request for another model"),
        "allowed_tool_runs_in_mode_deny": Gap("never", "OpenClaw has no such setting for one run"),
        "plan_mode_changes_nothing": Gap("never", "OpenClaw has no plan mode"),
        "file_in_a_further_directory_is_read_unasked": Gap("never", "OpenClaw has no such setting for one run"),
        "home_subagents": Gap(
            "never", "its sub-agents are entries of its configuration; they have no files of their own"
        ),
        "approval_of_an_edit_has_the_diff": Gap("not_yet", "it changes files without asking"),
        "policy_decides_about_changed_files": Gap(
            "not_yet", "it changes files without asking; the change is reported, not prevented"
        ),
        "policy_decides_about_read_files": Gap(
            "not_yet", "it reads files without asking; the read is reported, not prevented"
        ),
        **dict.fromkeys(
            (
                "abort_in_a_tool/one_shot",
                "file_edits/one_shot",
                "file_name_with_a_newline/one_shot",
                "file_read",
                "file_with_a_newline_in_its_name_is_read",
                "five_parallel_tools_of_which_two_fail/one_shot",
                "hooks_receive_the_events_of_a_run",
                "parallel_tools/one_shot",
                "shell/one_shot",
                "three_megabytes_of_tool_output/one_shot",
                "tool_failure/one_shot",
            ),
            Gap("not_yet", "`agent exec` reports only the number of its tool calls"),
        ),
        "failed_turn_keeps_the_run_open": Gap(
            "not_yet", "after a refused request it does not use the key for a minute"
        ),
        "approve_always": Gap("not_yet", "it can allow a command only once"),
        "deny_reason_reaches_the_model": Gap("not_yet", "ACP has no field for the reason"),
        **dict.fromkeys(("fork", "stored_session_forked"), Gap("never", "its sessions cannot be forked over ACP")),
        "interrupt_ends_a_one_prompt_run/one_shot": Gap(
            "not_yet", "`agent exec` prints no document when it is interrupted"
        ),
        **dict.fromkeys(
            ("hook_function_is_notified_of_a_question", "question_answered"),
            Gap("not_yet", "ACP cannot transport the answer that its `ask_user` waits for"),
        ),
        **dict.fromkeys(
            ("resume", "stored_session/one_shot", "stored_session_resumed/one_shot"),
            Gap("not_yet", "`agent exec` keeps no session; over ACP sessions can be resumed"),
        ),
        "steer": Gap("never", "ACP has no message for a running turn"),
        **dict.fromkeys(
            ("hook_functions_observe_a_sub_agent", "subagent"),
            Gap("not_yet", "ACP reports nothing of the sub-agents that `sessions_spawn` starts"),
        ),
        **dict.fromkeys(
            (
                "file_name_with_a_newline/two_way",
                "five_parallel_tools_of_which_two_fail/two_way",
                "quotes_in_names/two_way",
                "tool_failure/two_way",
                "unicode_and_spaces_in_names/two_way",
            ),
            Gap(
                "not_yet",
                "when it asks for permissions, it runs only simple commands: none that redirects or sets an exit code",
            ),
        ),
        "one_megabyte_in_a_delta/two_way": Gap(
            "not_yet", "over ACP it keeps the last half megabyte of an answer, and its raw stream mixes long records"
        ),
        "newline_in_the_name_of_the_workspace/two_way": Gap(
            "not_yet", "over ACP it drops the newline from the name, and refuses the files there"
        ),
    },
)
