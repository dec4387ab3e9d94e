"""The test kit of Claude Code: installation, environment, and how its model states each part of a script."""

import json
import os
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_testing.live import (
    DUMMY_KEY,
    SUBTASK,
    Ask,
    Delegate,
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
    StructuredAnswer,
    Todo,
    ToolPart,
    UnsupportedPart,
    Write,
    has_field,
    offers,
)
from agent_mux_testing.model_server import ToolUse
from agent_mux_testing.model_server.script import Block


def environment(context: KitContext) -> dict[str, str]:
    """Return the complete environment of Claude Code."""
    variables = context.minimal(
        ANTHROPIC_BASE_URL=context.url,
        ANTHROPIC_API_KEY=DUMMY_KEY,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        CLAUDE_CODE_MAX_RETRIES="2",  # instead of 10, with waits up to 39 s
        DISABLE_AUTOUPDATER="1",
        DISABLE_ERROR_REPORTING="1",
        DISABLE_TELEMETRY="1",
    )
    if os.geteuid() == 0:
        variables["IS_SANDBOX"] = "1"  # root may bypass permissions only in a sandbox, and the tests are offline
    return variables


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: PLR0911  # one line for each part
    """Convert a part of a script to a content block of the Messages API."""
    match part:
        case Shell(command):
            return ToolUse("Bash", {"command": command, "description": "Run it"})
        case Write(name, content):
            return ToolUse("Write", {"file_path": str(workspace / name), "content": content})
        case Edit(name, old, new):
            where = {"file_path": str(workspace / name)}
            return ToolUse("Edit", {**where, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("Read", {"file_path": str(workspace / name)})
        case Mcp(tool, arguments, server):
            return ToolUse(f"mcp__{server}__{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse("AskUserQuestion", {"questions": [_question(question, options)]})
        case Delegate(task):
            kind = {"subagent_type": "general-purpose", "run_in_background": False}
            return ToolUse("Task", {"description": "A task", "prompt": f"{SUBTASK} {task}", **kind})
        case StructuredAnswer(value):
            return ToolUse("StructuredOutput", dict(value))
        case Todo():
            raise UnsupportedPart("Claude Code has its todo tools only when they are switched on")


def _question(question: str, options: tuple[str, ...]) -> dict[str, object]:
    choices = [{"label": option, "description": option} for option in options]
    return {"question": question, "header": "Pick", "options": choices, "multiSelect": False}


def write_plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Create a marketplace with one plugin."""
    for name, content in (
        (".claude-plugin/marketplace.json", {"name": "shop", "owner": {"name": "x"}, "plugins": [PLUGIN]}),
        ("demo/.claude-plugin/plugin.json", {"name": "demo", "version": "1.2.0", "description": "A demo"}),
    ):
        (directory / name).parent.mkdir(parents=True)
        (directory / name).write_text(json.dumps(content), "utf-8")
    return (("plugin", "marketplace", "add", str(directory)),), "demo@shop", "demo@shop"


PLUGIN = {"name": "demo", "source": "./demo", "description": "A demo"}
KIT = LiveKit(
    agent="claude",
    pins=(
        # On an older Node than required, the package without a platform silently installs an old version.
        Pin(
            version="2.1.332",
            npm=("@anthropic-ai/claude-code-{os}-{arch}@2.1.332",),
            program="node_modules/@anthropic-ai/claude-code-*/claude",
        ),
    ),
    environment=environment,
    api="messages",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0,
        input_tokens=100,
        output_tokens=12,
        thinking_tokens=0,
        cached_tokens=30,
        cache_creation_tokens=20,
        source="native",
    ),
    once=("-p", "--output-format=stream-json", "--verbose"),
    baseline=Path(__file__).with_name("baselines") / "claude.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", "--scope=user", name, "--", program, *words),
        report_login=("auth", "status"),
        write_plugin=write_plugin,
        model="claude-opus-4-6",
    ),
    probes={
        "extra_args": OptionProbe(value=["--tools=Bash,Read"], is_seen=offers("Bash", but_not="Edit")),
        "native_options": OptionProbe(
            value={"env.CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4321"}, is_seen=has_field("max_tokens", 4321)
        ),
        "thinking_override": OptionProbe(
            value={"budget_tokens": 2048},
            is_seen=has_field("thinking.budget_tokens", 2048),
            options={"model": "claude-haiku-4-5"},  # later models have adaptive thinking
        ),
    },
    gaps={
        "file_in_a_further_directory_is_written_unasked": Gap(
            "never", "Claude Code asks before a command, wherever it writes"
        ),
        "stored_sessions_have_the_quota": Gap("not_yet", "Claude Code does not store the quota in its sessions"),
        "approvals_answered_in_reverse_order": Gap("never", "Claude Code asks for one command after the other"),
        "tools_run_concurrently": Gap(
            "never", "Claude Code runs commands one after the other, unless it knows that they only read"
        ),
    },
)
