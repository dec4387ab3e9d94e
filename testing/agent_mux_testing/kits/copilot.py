"""Test kit of Copilot: its package, its environment, and how the scripted model calls its tools."""

import json
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
    Write,
    cache_directory,
    has_field,
    mentions,
    offers,
)
from agent_mux_testing.model_server import ScriptText, ToolUse
from agent_mux_testing.model_server.script import Block

UNPACKED_DIRECTORY = "copilot-unpacked"
"""The cache directory into which the program unpacks its 235 MB on its first start. All homes share it."""


def environment(context: KitContext) -> dict[str, str]:
    """Return the environment of Copilot."""
    return context.minimal(
        COPILOT_AUTO_UPDATE="false",
        COPILOT_CACHE_HOME=str(cache_directory() / UNPACKED_DIRECTORY),
        COPILOT_MODEL="scripted",
        COPILOT_OFFLINE="true",
        COPILOT_PROVIDER_API_KEY=DUMMY_KEY,
        COPILOT_PROVIDER_BASE_URL=f"{context.url}/v1",
        COPILOT_PROVIDER_TYPE="openai",
    )


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: PLR0911  # one line for each part
    """Return a part as a content block, which the model server sends as chunks of a chat completion."""
    match part:
        case Shell(command):
            return ToolUse("bash", {"command": command, "description": "Run it", "mode": "sync", "initial_wait": 30})
        case Write(name, content):
            return ToolUse("create", {"path": str(workspace / name), "file_text": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"path": str(workspace / name), "old_str": old, "new_str": new})
        case Read(name):
            return ToolUse("view", {"path": str(workspace / name)})
        case Mcp(tool, arguments, server):
            return ToolUse(f"{server}-{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse("ask_user", {"question": question, "choices": list(options)})
        case Delegate(task):
            kind = {"agent_type": "task", "mode": "sync", "name": "helper"}
            return ToolUse("task", {"description": "A task", "prompt": f"{SUBTASK} {task}", **kind})
        case StructuredAnswer(value):
            return ScriptText(json.dumps(dict(value)))
        case Todo(items):
            return ToolUse("sql", {"description": "Plan", "query": _insert(items)})


def _insert(items: tuple[str, ...]) -> str:
    states = ["in_progress", *["pending"] * (len(items) - 1)]
    rows = [f"('{at}', '{item}', '{state}')" for at, (item, state) in enumerate(zip(items, states, strict=True))]
    return f"INSERT INTO todos (id, title, status) VALUES {', '.join(rows)}"  # noqa: S608  # the script of a test


def trust(home: Path, workspace: Path) -> None:
    """Mark a folder as trusted in the way Copilot's terminal does."""
    (home / ".copilot").mkdir(exist_ok=True)
    (home / ".copilot" / "config.json").write_text(json.dumps({"trustedFolders": [str(workspace)]}), "utf-8")


def write_plugin(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Write a marketplace with one plugin; return the commands that add it, the plugin's name and its listed name."""
    manifest = {"name": "demo", "version": "1.2.0", "description": "A demo"}
    listed = {"name": "demo", "source": "./demo", "description": "A demo"}
    marketplace = {"name": "shop", "owner": {"name": "x"}, "plugins": [listed]}
    for name, content in (
        (".claude-plugin/marketplace.json", marketplace),
        ("demo/.claude-plugin/plugin.json", manifest),
    ):
        (directory / name).parent.mkdir(parents=True)
        (directory / name).write_text(json.dumps(content), "utf-8")
    return (("plugin", "marketplace", "add", str(directory)),), "demo@shop", "demo@shop"


KIT = LiveKit(
    agent="copilot",
    pins=(
        # The native program, not the package with its launcher: a signal to the launcher does not reach the program.
        Pin(
            version="1.0.102",
            npm=("@github/copilot-{os}-{arch}@1.0.102",),
            program="node_modules/@github/copilot-*/copilot",
        ),
    ),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0,
        input_tokens=120,
        output_tokens=12,
        thinking_tokens=5,
        cached_tokens=30,
        cache_creation_tokens=0,
        source="unknown",
    ),
    ways=("one_shot",),
    once=("-p",),
    baseline=Path(__file__).with_name("baselines") / "copilot.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", name, "--", program, *words),
        write_plugin=write_plugin,
        model="gpt-5.4",
        print_model=("config", "model"),
        trust=trust,
    ),
    probes={
        "extra_args": OptionProbe(value=["--log-dir=probe-logs"], is_seen=mentions("probe-logs")),
        "native_options": OptionProbe(value={"availableTools": ["bash"]}, is_seen=offers("bash", but_not="task")),
        "thinking_override": OptionProbe(value={"effort": "xhigh"}, is_seen=has_field("reasoning_effort", "xhigh")),
    },
    gaps={
        "mode_prompt_after_yolo_asks": Gap("not_yet", "Copilot keeps the permissions of the start of its session"),
        "policy_decides_about_read_files": Gap(
            "not_yet", "Copilot reads files without an approval request; reads are reported, not prevented"
        ),
        "file_overwritten": Gap("never", "Copilot's tool for new files refuses existing files"),
    },
)
