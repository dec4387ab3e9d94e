"""The test kit of Gemini CLI: installation, environment, and how its model states each part of a script."""

import hashlib
import json
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_adapters.gemini.argv import ACP
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
    mentions,
)
from agent_mux_testing.model_server import ToolUse
from agent_mux_testing.model_server.script import Block

# Without an explicit model each run begins with a request to a router.
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "model": {"name": "gemini-2.5-pro"},
    "general": {"enableAutoUpdate": False, "maxAttempts": 3},
}


def environment(context: KitContext) -> dict[str, str]:
    """Return the complete environment of Gemini CLI."""
    context.write_default(".gemini/settings.json", json.dumps(_SETTINGS))
    # In an untrusted directory the CLI connects to no MCP server, not even to those of the run.
    return context.minimal(
        GEMINI_API_KEY=DUMMY_KEY, GOOGLE_GEMINI_BASE_URL=context.url, GEMINI_CLI_TRUST_WORKSPACE="true"
    )


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: ARG001, PLR0911  # one line for each part; paths are relative
    """Convert a part of a script to a block, which the model server converts to a part of the Gemini API."""
    match part:
        case Shell(command):
            return ToolUse("run_shell_command", {"command": command, "description": "Run it"})
        case Write(name, content):
            return ToolUse("write_file", {"file_path": name, "content": content})
        case Edit(name, old, new):
            where = {"file_path": name, "instruction": "Replace it."}
            return ToolUse("replace", {**where, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("read_file", {"file_path": name})
        case Mcp(tool, arguments, server):
            return ToolUse(f"mcp_{server}_{tool}", dict(arguments))
        case Todo(items):
            status = ["in_progress", *["pending"] * len(items)]
            return ToolUse("write_todos", {"todos": [{"description": item, "status": state}
                                                     for item, state in zip(items, status, strict=False)]})  # fmt: skip
        case Delegate(task):
            return ToolUse("invoke_agent", {"agent_name": "generalist", "prompt": f"{SUBTASK} {task}"})
        case Ask():
            raise UnsupportedPart("Gemini CLI has its question tool only in a terminal")
        case StructuredAnswer():
            raise UnsupportedPart("Gemini CLI takes no schema for its answer")


def extension(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Create a directory with an extension."""
    directory.mkdir()
    manifest = {"name": "demo", "version": "1.2.0", "description": "A demo"}
    (directory / "gemini-extension.json").write_text(json.dumps(manifest), "utf-8")
    return (), str(directory), "demo"


def grant_consent(home: Path, workspace: Path, main: Path) -> None:
    """Confirm a sub-agent of a project as the CLI does; sub-agents of the user need no confirmation."""
    if main.is_relative_to(workspace / ".gemini" / "agents"):
        path = home / ".gemini" / "acknowledgments" / "agents.json"
        path.parent.mkdir()
        digest = hashlib.sha256(main.read_bytes()).hexdigest()
        path.write_text(json.dumps({str(workspace): {main.stem: digest}}), "utf-8")


_NEVER_ASKS = Gap("never", "the question tool exists at a terminal only")
_DROPPED = Gap("not_yet", "a model call whose stream breaks off is not tried again")
_NO_RETRIES = Gap("not_yet", "the ACP mode reports retries only at its end, on standard error")
_NO_DELEGATION = Gap("not_yet", "the ACP mode refuses sub-agents: denied by policy")
_NO_ODD_PATHS = Gap("never", "its file tools refuse paths with double quotes, newlines or control characters")
_NO_STOP_REASON = Gap("not_yet", "neither stream-json nor the ACP mode reports why an answer with text ended")
_GAPS = {
    "policy_decides_about_read_files": Gap("not_yet", "it reads without asking; reads are reported, not prevented"),
    "approvals_answered_in_reverse_order": Gap("never", "it asks for one call after the other"),
    "approve_file_change": Gap("never", "files of git are out of reach of the tools"),
    **dict.fromkeys(
        ("cut_answer/one_shot", "cut_answer/two_way", "filtered_answer/one_shot", "filtered_answer/two_way"),
        _NO_STOP_REASON,
    ),
    "deny_reason_reaches_the_model": Gap("not_yet", "a refused permission has no field for a reason"),
    "dropped_stream_then_recovers/one_shot": _DROPPED,
    "dropped_stream_then_recovers/two_way": _DROPPED,
    "file_with_a_newline_in_its_name_is_read": _NO_ODD_PATHS,
    **dict.fromkeys(
        (
            "quotes_in_names/one_shot",
            "quotes_in_names/two_way",
            "newline_in_the_name_of_the_workspace/one_shot",
            "newline_in_the_name_of_the_workspace/two_way",
        ),
        _NO_ODD_PATHS,
    ),
    "file_edits/one_shot": Gap("not_yet", "stream-json does not report whether a file existed before"),
    "fork": Gap("never", "sessions cannot be forked"),
    "no_session": Gap("never", "every session is saved"),
    "output_schema": Gap("never", "an answer cannot be given a schema"),
    "hook_function_is_notified_of_a_question": _NEVER_ASKS,
    "hook_functions_observe_a_sub_agent": _NO_DELEGATION,
    "question_answered": _NEVER_ASKS,
    "question_answered_with_text": _NEVER_ASKS,
    "question_declined": _NEVER_ASKS,
    "rate_limited_then_recovers/two_way": _NO_RETRIES,
    "server_error_permanently/two_way": _NO_RETRIES,
    "steer": Gap("never", "ACP has no message for a turn that runs"),
    "stored_session_forked": Gap("never", "sessions cannot be forked"),
    "stored_session/two_way": Gap("not_yet", "the ACP mode reports the input of a call differently than it is stored"),
    "stored_session_resumed/two_way": Gap("not_yet", "the ACP mode loses sessions that are less than a minute old"),
    "subagent": _NO_DELEGATION,
    "subagent_events_included": _NO_DELEGATION,
    "thinking": Gap("not_yet", "the ACP mode strips the spaces around each piece of a thought"),
    "thinking_effort": Gap("never", "no setting for a single run"),
    "unknown_tool": Gap("not_yet", "the ACP mode does not report calls of unknown tools"),
}

KIT = LiveKit(
    agent="gemini",
    pins=(
        Pin(
            version="0.61.0",
            npm=("@google/gemini-cli@0.61.0",),
            program="node_modules/.bin/gemini",
        ),
    ),
    environment=environment,
    api="generate",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=120, output_tokens=17, thinking_tokens=5, cached_tokens=30, source="computed"
    ),
    # The ACP mode reports neither thinking tokens nor cached input tokens.
    per_call_by_protocol={ACP: CostRecord(total_usd=0.0, input_tokens=150, output_tokens=12, source="computed")},
    once=("-p",),
    baseline=Path(__file__).with_name("baselines") / "gemini.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", "--scope=user", name, program, "--", *words),
        write_plugin=extension,
        grant_consent=grant_consent,
        model="gemini-2.5-flash",
    ),
    probes={
        "extra_args": OptionProbe(
            value=["--policy=probe.toml"],
            is_seen=mentions('Tool "run_shell_command" not found'),
            files={"probe.toml": '[[rule]]\ntoolName = "run_shell_command"\ndecision = "deny"\npriority = 900\n'},
        ),
    },
    gaps=_GAPS,
)
