"""The test kit of OpenCode: how to install it, its environment, and how the scripted model calls its tools."""

import json
from pathlib import Path
from typing import Any

from agent_mux.events.base import CostRecord
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
    Write,
    has_field,
    mentions,
)
from agent_mux_testing.model_server import ToolUse
from agent_mux_testing.model_server.script import Block

_MODEL = {
    "name": "Scripted",
    "reasoning": True,
    "tool_call": True,
    "attachment": True,
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "limit": {"context": 100_000, "output": 8_000},
    "cost": {"input": 1, "output": 2},
}


def environment(context: KitContext) -> dict[str, str]:
    """Write OpenCode's configuration for the scripted model, and return its environment."""
    options = {"baseURL": "{env:SCRIPTED_URL}/v1", "apiKey": "{env:SCRIPTED_API_KEY}"}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": options,
        "models": {"scripted": _MODEL, "small": {"name": "Small"}},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/small",
        "enabled_providers": ["scripted"],
        "agent": {"title": {"disable": True}},  # titles cost model calls, which scenarios count
        "provider": {"scripted": provider},
    }
    context.write_default(".config/opencode/opencode.json", json.dumps(config))
    context.write_default(
        ".local/share/opencode/auth.json", json.dumps({"scripted": {"type": "api", "key": DUMMY_KEY}})
    )
    return context.minimal(
        SCRIPTED_API_KEY=DUMMY_KEY,
        SCRIPTED_URL=context.url,  # a variable, because the URL differs for each model server
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
    )


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: PLR0911  # one line for each part
    """Return the tool call for a part of a scenario."""
    match part:
        case Shell(command):
            return ToolUse("bash", {"command": command, "description": "Run it"})
        case Write(name, content):
            return ToolUse("write", {"filePath": str(workspace / name), "content": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"filePath": str(workspace / name), "oldString": old, "newString": new})
        case Read(name):
            return ToolUse("read", {"filePath": str(workspace / name)})
        case Mcp(tool, arguments, server):
            return ToolUse(f"{server}_{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse("question", {"questions": [_question(question, options)]})
        case Todo(items):
            return ToolUse("todowrite", {"todos": [_todo(index, item) for index, item in enumerate(items)]})
        case Delegate(task):
            what = {"description": "A task", "prompt": f"{SUBTASK} {task}"}
            return ToolUse("task", {**what, "subagent_type": "general"})
        case StructuredAnswer(value):
            return ToolUse("StructuredOutput", dict(value))


def _question(question: str, options: tuple[str, ...]) -> dict[str, Any]:
    choices = [{"label": option, "description": option} for option in options]
    return {"question": question, "header": "Pick", "options": choices}


def _todo(index: int, item: str) -> dict[str, str]:
    return {"content": item, "status": "in_progress" if index == 0 else "pending", "priority": "medium"}


def write_plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Create a package with a plugin."""
    directory.mkdir()
    package = {"name": "demo", "version": "1.2.0", "type": "module", "exports": {"./server": "./index.js"}}
    (directory / "package.json").write_text(json.dumps(package), "utf-8")
    (directory / "index.js").write_text("export const Demo = async () => ({})", "utf-8")
    return (), str(directory), directory.as_uri()


KIT = LiveKit(
    agent="opencode",
    patience=180.0,  # it repeats a call five times, after up to 40 s, when a connection breaks off
    pins=(
        Pin(
            version="1.18.33",
            # `opencode-ai` finds the native program only in its install script.
            npm=("opencode-{os}-{arch}@1.18.33",),
            program="node_modules/opencode-*/bin/opencode",
            needs=("ripgrep",),
        ),
    ),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=120, output_tokens=12, thinking_tokens=5, cached_tokens=30, source="native"
    ),
    # Streaming and requests need the server.
    ways=("two_way",),
    once=("run",),
    help=(("run", "--help"), ("serve", "--help")),
    baseline=Path(__file__).with_name("baselines") / "opencode.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", name, "--", program, *words),
        report_login=("auth", "list"),
        is_logged_in=lambda _, printed: "1 credentials" in printed,
        write_plugin=write_plugin,
        model="scripted/small",
    ),
    probes={
        "extra_args": OptionProbe(value=["--agent=plan"], is_seen=mentions("READ-ONLY"), options={"stream": False}),
        "native_options": OptionProbe(
            value={"instructions": ["probe.md"]}, is_seen=mentions(MARK), files={"probe.md": MARK}
        ),
        "thinking_override": OptionProbe(value={"variant": "high"}, is_seen=has_field("reasoning_effort", "high")),
    },
    gaps={
        "mode_prompt_after_yolo_asks": Gap("not_yet", "OpenCode keeps the permissions of the start of its session"),
        "home_plugins": Gap("not_yet", "OpenCode has a command to install plugins, but none to remove them"),
    },
    unstable=r"server\.instance\.disposed .*",  # printed only if the server has the time
)
