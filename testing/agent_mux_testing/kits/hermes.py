"""The kit that drives the real Hermes offline: installation, environment, tool calls and gaps."""

import json
import shutil
import subprocess
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_adapters.hermes.mcp_servers import TOOL_PREFIX
from agent_mux_adapters.hermes.tools import DELEGATION, QUESTION, SHELL
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
)
from agent_mux_testing.model_server import ToolUse
from agent_mux_testing.model_server.script import Block

HARMFUL = "rm -rf ./nothing-there"
"""Begins commands for which Hermes asks permission: it asks only for those that look harmful."""

GIT = shutil.which("git") or "git"
GIT_IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.org")

CONFIG = ".hermes/config.yaml"


def environment(context: KitContext) -> dict[str, str]:
    """Return the whole environment of Hermes, and write its configuration."""
    model = {"provider": "custom", "default": "fake-model", "base_url": "${SCRIPTED_URL}/v1", "api_key": DUMMY_KEY}
    # Otherwise it installs missing packages when it starts.
    security = {"allow_lazy_installs": False, "tirith_enabled": False}
    # Otherwise it asks the model for a title at an unpredictable time.
    titles = {"title_generation": {"enabled": False}}
    if not (context.home / CONFIG).exists():  # keep the changes of a scenario
        context.write(CONFIG, json.dumps({"model": model, "security": security, "auxiliary": titles}))
    return context.minimal(SCRIPTED_URL=context.url)


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: ARG001, PLR0911  # one line per part
    """Return a part as a content block, which the model server converts to chat completions; paths are relative."""
    match part:
        case Shell(command, asks):
            return ToolUse(SHELL, {"command": f"{HARMFUL}; {command}" if asks else command})
        case Write(name, content):
            return ToolUse("write_file", {"path": name, "content": content})
        case Edit(name, old, new):
            return ToolUse("patch", {"mode": "replace", "path": name, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("read_file", {"path": name})
        case Mcp(tool, arguments, server):
            return ToolUse(f"{TOOL_PREFIX}{server}__{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse(QUESTION, {"question": question, "choices": list(options)})
        case Delegate(task):
            return ToolUse(DELEGATION, {"goal": f"{SUBTASK} {task}"})
        case Todo(items):
            states = ["in_progress", *["pending"] * len(items)]
            todos = [
                {"id": str(number), "content": item, "status": state}
                for number, (item, state) in enumerate(zip(items, states, strict=False), 1)
            ]
            return ToolUse("todo", {"todos": todos})
        case StructuredAnswer():
            raise UnsupportedPart("Hermes accepts no schema for its answer")


def write_plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Write a git repository with a plugin: Hermes installs plugins only from repositories."""
    repository = directory / "demo"
    repository.mkdir(parents=True)
    (repository / "plugin.yaml").write_text("name: demo\nversion: 1.2.0\ndescription: A demo\n", "utf-8")
    (repository / "__init__.py").write_text("def register(ctx):\n    pass\n", "utf-8")
    for arguments in (("init", "-q"), ("add", "."), (*GIT_IDENTITY, "commit", "-q", "-m", "x")):
        subprocess.run([GIT, "-C", str(repository), *arguments], check=True)
    return (), repository.as_uri(), "demo"


KIT = LiveKit(
    agent="hermes",
    pins=(Pin(version="0.19.0", pip="hermes-agent[acp,mcp]==0.19.0", program="bin/hermes"),),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=120, output_tokens=12, thinking_tokens=5, cached_tokens=30, source="unknown"
    ),
    # All options lead to its two-way protocol.
    ways=("one_shot",),
    once=("-z",),
    baseline=Path(__file__).with_name("baselines") / "hermes.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, arguments: ("mcp", "add", name, f"--command={program}", "--args", *arguments),
        add_mcp_input="y\n",  # enable all the tools that it has found
        write_plugin=write_plugin,
        model="other-model",
    ),
    probes={
        "native_options": OptionProbe(value={"model.max_tokens": 1234}, is_seen=has_field("max_tokens", 1234)),
        "thinking_override": OptionProbe(value={"effort": "minimal"}, is_seen=has_field("reasoning_effort", "minimal")),
    },
    gaps={
        "run_enters_plan_mode_and_leaves_it": Gap("never", "Hermes has no plan mode in its protocol"),
        "mode_prompt_after_yolo_asks": Gap("never", "Hermes is started so that it asks, or not"),
        "next_turn_uses_another_model": Gap("not_impl", "agent-mux sends Hermes no request for another model"),
        "allowed_tool_runs_in_mode_deny": Gap("never", "Hermes has no such setting for one run"),
        "plan_mode_changes_nothing": Gap("never", "Hermes has no plan mode"),
        "file_in_a_further_directory_is_read_unasked": Gap("never", "Hermes has no such setting for one run"),
        "disallowed_tool_does_not_run_in_mode_yolo": Gap("never", "Hermes has no such setting for one run"),
        "approvals_answered_in_reverse_order": Gap("never", "it asks for one command after the other"),
        "home_subagents": Gap("never", "it creates its sub-agents for one task each; they are not defined in files"),
        "approval_of_an_edit_has_the_diff": Gap("not_yet", "it changes files without asking"),
        "policy_decides_about_changed_files": Gap(
            "not_yet", "it changes files without asking; the change is reported, not prevented"
        ),
        "policy_decides_about_read_files": Gap(
            "not_yet", "it reads files without asking; the read is reported, not prevented"
        ),
        "dropped_stream_then_recovers/one_shot": Gap(
            "not_yet", "Hermes lets the model continue after the cut, and does not report the cut"
        ),
        "subagent": Gap(
            "never", "the report of a sub-agent begins a turn of its own; the turn that delegated ends with an answer"
        ),
        "unknown_tool": Gap("never", "Hermes replaces an unknown tool name by the most similar known one"),
    },
)
