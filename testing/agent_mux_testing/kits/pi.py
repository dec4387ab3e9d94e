"""The test kit of pi: how to install it, its environment, and how the scripted model calls its tools."""

import json
from pathlib import Path

from msgspec.structs import replace

from agent_mux_testing.kits.pi_provider import (
    MODEL,
    OTHER_MODEL,
    PER_CALL,
    PROVIDER,
    provider,
    skill_package,
    write_settings_once,
)
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
from agent_mux_testing.model_server import ToolUse
from agent_mux_testing.model_server.script import Block

NO_MCP = "this version has no MCP client"
OF_MCP = (
    "home_mcp_servers_added_by_amux", "home_mcp_servers_added_by_the_agent", "mcp_tool/one_shot", "mcp_tool/two_way",
    "mcp_tool_failure/one_shot", "mcp_tool_failure/two_way", "approve_mcp_tool", "tools_of_the_caller/one_shot",
    "tools_of_the_caller/two_way",
)  # fmt: skip
"""The scenarios that need MCP."""
NO_QUESTIONS = "pi has no tool for questions, unless a user's extension adds one"


def environment(context: KitContext) -> dict[str, str]:
    """Write pi's configuration for the scripted model, and return its environment."""
    context.write(".pi/agent/models.json", json.dumps({"providers": {PROVIDER: provider(context, DUMMY_KEY)}}))
    # Until 0.73 the provider's client has its own retries, which pi does not report.
    retry = {"maxRetries": 2, "baseDelayMs": 50, "provider": {"maxRetries": 0}}
    chosen = {"defaultProvider": PROVIDER, "defaultModel": MODEL, "retry": retry}
    # Since 0.79 pi uses the skills of a project only if the project is trusted; `pi mcp` ignores the default.
    context.write(".pi/agent/trust.json", json.dumps({"/": True}))
    write_settings_once(context, ".pi/agent/settings.json", {**chosen, "defaultProjectTrust": "always"})
    return context.minimal(PI_OFFLINE="1", PI_TELEMETRY="0")


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: ARG001  # paths are relative
    """Return the tool call for a part of a scenario."""
    match part:
        case Shell(command):
            return ToolUse("bash", {"command": command})
        case Write(name, content):
            return ToolUse("write", {"path": name, "content": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"path": name, "edits": [{"oldText": old, "newText": new}]})
        case Read(name):
            return ToolUse("read", {"path": name})
        case Mcp(tool, arguments, server):
            return ToolUse(f"mcp__{server}__{tool}", dict(arguments))
    raise UnsupportedPart(f"pi has no tool for {type(part).__name__}")


def package(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Create a package in a folder; its name is the folder's path."""
    first, source = skill_package(directory)
    return first, source, source


KIT = LiveKit(
    agent="pi",
    pins=(
        Pin(
            version="1.6.0",
            npm=("@earendil-works/pi-coding-agent@1.6.0",),
            program="node_modules/@earendil-works/pi-coding-agent/dist/cli.js",
            needs=("node-24",),
        ),
        Pin(
            version="0.73.1",
            npm=("@mariozechner/pi-coding-agent@0.73.1",),
            program="node_modules/@mariozechner/pi-coding-agent/dist/cli.js",
            needs=("node-24",),
            per_call=replace(PER_CALL, thinking_tokens=None),  # it does not count them separately
            gaps=dict.fromkeys(OF_MCP, Gap("never", NO_MCP)),
        ),
    ),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=PER_CALL,
    once=("-p",),
    baseline=Path(__file__).with_name("baselines") / "pi.json",
    # The usage in an update of a message is what is known at the time of printing.
    unstable=r"message_update\S* usage\.(reasoning|cost\.totalFromProvider)",
    installation=InstallationProbes(
        # 0.73 has no other command to check a login: it lists the models for which it has credentials.
        report_login=("--list-models",),
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", name, "--", program, *words),
        is_logged_in=lambda _, printed: MODEL in printed,
        write_plugin=package,
        model=f"{PROVIDER}/{OTHER_MODEL}",
    ),
    probes={
        "extra_args": OptionProbe(value=["--tools", "bash,read"], is_seen=offers("bash", but_not="edit")),
        "thinking_override": OptionProbe(value={"level": "minimal"}, is_seen=has_field("reasoning_effort", "minimal")),
    },
    gaps={
        "run_enters_plan_mode_and_leaves_it": Gap("never", "pi has no plan mode in its protocol"),
        "mode_prompt_after_yolo_asks": Gap("never", "pi is started so that it asks, or not"),
        "plan_mode_changes_nothing": Gap("never", "pi has no plan mode of its own"),
        "file_in_a_further_directory_is_read_unasked": Gap("never", "pi confines its tools to no directory"),
        "approvals_answered_in_reverse_order": Gap("never", "pi asks for one call after the other"),
        "home_subagents": Gap("never", "pi has no sub-agents"),
        "hook_function_is_notified_of_a_question": Gap("never", NO_QUESTIONS),
        "hook_functions_observe_a_sub_agent": Gap("never", "pi has no sub-agents"),
        "question_answered": Gap("never", NO_QUESTIONS),
        "question_answered_with_text": Gap("never", NO_QUESTIONS),
        "question_declined": Gap("never", NO_QUESTIONS),
        "subagent": Gap("never", "pi has no sub-agents"),
        "subagent_events_included": Gap("never", "pi has no sub-agents"),
        "output_schema": Gap("never", "pi has no output schema"),
    },
)
