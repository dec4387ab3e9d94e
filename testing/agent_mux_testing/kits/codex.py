"""Test kit of Codex: its package, its environment, and how the scripted model calls its tools."""

import json
from pathlib import Path
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.documents import with_field
from agent_mux_testing.live import (
    DUMMY_KEY,
    MARK,
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
    mentions,
)
from agent_mux_testing.model_server import CustomToolCall, FunctionCall, ScriptMessage, ScriptStep
from agent_mux_testing.model_server.script import Item

_CONFIG = """\
model = "gpt-5.5"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = ""
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 1

# Without this, every exit waits 5 s for an unreachable server.
[analytics]
enabled = false
"""
_MULTI_AGENT = "multi_agent_v1"
_SPAWNED = "{{re:agent_id[^0-9a-f]+([0-9a-f-]{36})}}"


def environment(context: KitContext) -> dict[str, str]:
    """Return the environment of Codex. Settings that a scenario has written before are kept."""
    existing = context.home / ".codex" / "config.toml"
    settings = existing.read_text("utf-8") if existing.exists() else _CONFIG
    settings = with_field(settings, "toml", ("model_providers", "scripted", "base_url"), f"{context.url}/v1")
    config = context.write(".codex/config.toml", settings)
    context.write(".codex/probe.config.toml", f'developer_instructions = "{MARK}"\n')
    # With bubblewrap on PATH, the sandbox needs helper programs in CODEX_HOME. Codex creates none below TMPDIR.
    temporary = context.home / "tmp"
    temporary.mkdir(exist_ok=True)
    return context.minimal(CODEX_HOME=str(config.parent), TMPDIR=str(temporary), SCRIPTED_API_KEY=DUMMY_KEY)


def format_tool_call(part: ToolPart, workspace: Path) -> Item:  # noqa: ARG001, PLR0911  # one line for each part; paths are relative
    """Return a part as an output item of the Responses API."""
    match part:
        case Shell(command, asks):
            escalated = {"sandbox_permissions": "require_escalated", "justification": "it has to"} if asks else {}
            return FunctionCall("exec_command", {"cmd": command, **escalated})
        case Write(name, content):
            added = "".join(f"+{line}\n" for line in content.splitlines())
            return _patch(f"*** Add File: {name}\n{added}")
        case Edit(name, old, new):
            return _patch(f"*** Update File: {name}\n@@\n-{old}\n+{new}\n")
        case Read(name):  # Codex has no tool that reads files
            return FunctionCall("exec_command", {"cmd": f"cat {name}"})
        case Mcp(tool, arguments, server):
            return FunctionCall(tool, dict(arguments), namespace=f"mcp__{server}")
        case Ask(question, options):
            return FunctionCall("request_user_input", {"questions": [_question(question, options)]})
        case Delegate(task):
            return FunctionCall(
                "spawn_agent", {"message": f"{SUBTASK} {task}", "agent_type": "default"}, namespace=_MULTI_AGENT
            )
        case StructuredAnswer(value):
            return ScriptMessage(json.dumps(dict(value)))
        case Todo():
            raise UnsupportedPart("the plan tool of Codex is disabled by default")


def _patch(hunks: str) -> CustomToolCall:
    return CustomToolCall("apply_patch", f"*** Begin Patch\n{hunks}*** End Patch")


def _question(question: str, options: tuple[str, ...]) -> dict[str, Any]:
    choices = [{"label": option, "description": option} for option in options]
    return {"question": question, "header": "Pick", "options": choices, "id": "q1"}


def trust(home: Path, workspace: Path) -> None:
    """Mark a project as trusted in the way Codex itself does."""
    config = home / ".codex" / "config.toml"
    settings = with_field(config.read_text("utf-8"), "toml", ("projects", str(workspace), "trust_level"), "trusted")
    config.write_text(settings, "utf-8")


def is_logged_in(_: int, printed: str) -> bool:
    """Return whether `codex doctor` reports credentials. `codex login status` reports only those of OpenAI."""
    report = json.loads(printed[printed.index("{") :])
    return bool(report["checks"]["auth.credentials"]["status"] == "ok")


def write_plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Write a marketplace with one plugin; return the commands that add it, the plugin's name and its listed name."""
    manifest = {"name": "demo", "version": "1.2.0", "description": "A demo"}
    listed = {"name": "demo", "source": "./demo", "description": "A demo"}
    marketplace = {"name": "shop", "owner": {"name": "x"}, "plugins": [listed]}
    for name, content in (
        (".claude-plugin/marketplace.json", marketplace),
        ("demo/.codex-plugin/plugin.json", manifest),
    ):
        (directory / name).parent.mkdir(parents=True)
        (directory / name).write_text(json.dumps(content), "utf-8")
    return (("plugin", "marketplace", "add", str(directory)),), "demo@shop", "demo@shop"


KIT = LiveKit(
    agent="codex",
    pins=(
        Pin(
            version="0.171.0",
            npm=("@openai/codex@0.171.0-{os}-{arch}",),
            program="node_modules/@openai/codex/vendor/*/bin/codex",
        ),
    ),
    environment=environment,
    api="responses",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=70, output_tokens=20, thinking_tokens=5, cached_tokens=30, source="computed"
    ),
    after_delegation=(
        ScriptStep(
            items=(
                FunctionCall(
                    "wait_agent", json.dumps({"targets": [_SPAWNED], "timeout_ms": 10_000}), namespace=_MULTI_AGENT
                ),
            )
        ),
    ),
    once=("exec", "--json", "--skip-git-repo-check"),
    help=(("exec", "--help"), ("app-server", "--help")),
    baseline=Path(__file__).with_name("baselines") / "codex.json",
    unstable="^configWarning ",  # printed only if PATH contains no bubblewrap
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", name, "--", program, *words),
        report_login=("doctor", "--json"),
        is_logged_in=is_logged_in,
        write_plugin=write_plugin,
        model="gpt-5.6-terra",
        model_listing_subagents="gpt-5.6-sol",
        trust=trust,
    ),
    probes={
        "extra_args": OptionProbe(value=["--profile=probe"], is_seen=mentions(MARK)),
        "native_options": OptionProbe(value={"model_verbosity": "low"}, is_seen=has_field("text.verbosity", "low")),
        "thinking_override": OptionProbe(
            value={"effort": "xhigh", "summary": "detailed"},
            is_seen=lambda body: (
                body.get("reasoning", {}).items() >= {"effort": "xhigh", "summary": "detailed"}.items()
            ),
        ),
    },
    gaps={
        "allowed_tool_runs_in_mode_deny": Gap("never", "Codex has no rules for single tools"),
        "disallowed_tool_does_not_run_in_mode_yolo": Gap("never", "Codex has no rules for single tools"),
        "file_read": Gap("never", "Codex has no tool that reads files: it runs `cat`, which is a command"),
        "file_with_a_newline_in_its_name_is_read": Gap("never", "Codex has no tool that reads files"),
        "file_edits/one_shot": Gap("not_yet", "`codex exec` reports neither the diff nor the size of a patch"),
        "quota_is_reported/one_shot": Gap("not_yet", "`codex exec` prints no quota; the stored session has it"),
        "stored_session/one_shot": Gap(
            "not_yet", "`codex exec` reports less about a patch than the stored session contains"
        ),
        "deny_reason_reaches_the_model": Gap("not_yet", "a declined approval has no field for a reason"),
        "unknown_tool": Gap("not_yet", "a call of an unknown tool appears only on stderr, as prose"),
    },
)
