"""The test kit of the embedded agent, which is part of this installation: only its command is written."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux.sdk import __version__
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
from agent_mux_testing.model_server.script import Block, ScriptText, ToolUse

_MODEL = "openai-chat:gpt-5-mini"
_OTHER_MODEL = "openai-chat:gpt-5-nano"
_NO_QUOTA = Gap("never", "the libraries with which it calls models do not pass on the headers with quotas")


def _script() -> str:
    """Return a script that runs the `amux-agent` of this checkout, whatever else is installed."""
    package = find_spec("agent_mux")
    source = str(Path(package.origin).parents[1]) if package is not None and package.origin is not None else ""
    start = "from agent_loop.cli.main import main"
    return f"#!{sys.executable}\nimport sys\nsys.path[:0] = [{source!r}]\n{start}\nsys.exit(main())\n"


def environment(context: KitContext) -> dict[str, str]:
    """Write the agent's settings for the scripted model, and return its environment."""
    context.write_default("agent/settings.json", json.dumps({"model": _MODEL}))
    return context.minimal(
        AMUX_AGENT_HOME=str(context.home / "agent"),
        OPENAI_API_KEY=DUMMY_KEY,
        OPENAI_BASE_URL=f"{context.url}/v1",
    )


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: ARG001, PLR0911  # paths are relative; one line each
    """Return the tool call for a part of a scenario."""
    match part:
        case Shell(command):
            return ToolUse("shell", {"command": command})
        case Write(name, content):
            return ToolUse("write_file", {"path": name, "content": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"path": name, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("read_file", {"path": name})
        case Ask(question, options):
            return ToolUse("ask_user", {"question": question, "options": list(options)})
        case Todo(items):
            return ToolUse("write_todos", {"todos": [_todo(index, item) for index, item in enumerate(items)]})
        case Mcp(tool, arguments, server):
            return ToolUse(f"{server}__{tool}", dict(arguments))
        case Delegate(task):
            return ToolUse("delegate", {"task": f"{SUBTASK} {task}"})
        case StructuredAnswer(value):
            return ScriptText(json.dumps(value))
    raise UnsupportedPart(f"the embedded agent has no tool for {type(part).__name__}")


def _todo(index: int, item: str) -> dict[str, str]:
    return {"id": str(index), "title": item, "status": "pending" if index else "in_progress"}


KIT = LiveKit(
    agent="native",
    pins=(Pin(version=__version__, script=_script(), program="bin/amux-agent"),),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=CostRecord(
        total_usd=0.0, input_tokens=120, output_tokens=12, thinking_tokens=5, cached_tokens=30, source="native"
    ),
    ways=("two_way",),
    once=("--approval-mode=yolo",),
    baseline=Path(__file__).with_name("baselines") / "native.json",
    installation=InstallationProbes(
        list_mcp=("mcp", "list"),
        add_mcp=lambda name, program, words: ("mcp", "add", name, "--", program, *words),
        model=_OTHER_MODEL,
    ),
    probes={
        "extra_args": OptionProbe(value=["--agents-doc=probe.md"], is_seen=mentions(MARK), files={"probe.md": MARK}),
        "native_options": OptionProbe(
            value={"agentsDocs": ["probe.md"]}, is_seen=mentions(MARK), files={"probe.md": MARK}
        ),
        "thinking_override": OptionProbe(value={"effort": "minimal"}, is_seen=has_field("reasoning_effort", "minimal")),
    },
    gaps={
        "tools_run_concurrently": Gap("never", "Commands run in the order given; only tools that read run together"),
        "approvals_answered_in_reverse_order": Gap("never", "It asks for one command after the other, as it runs them"),
        "file_in_a_further_directory_is_written_unasked": Gap(
            "never", "The agent asks before a command, wherever it writes"
        ),
        **dict.fromkeys(
            (
                "quota_is_reported/one_shot",
                "quota_is_reported/two_way",
                "stored_sessions_have_the_quota",
                "exhausted_quota_is_waited_for",
                "exhausted_quota_is_an_error_without_a_wait",
                "exhausted_quota_falls_back_to_another_agent",
            ),
            _NO_QUOTA,
        ),
        "home_plugins": Gap("never", "the embedded agent is extended with hooks and tools in Python"),
        "hook_of_the_bare_cli_denies_a_command": Gap(
            "never", "its hooks are written in Python; runs through amux use amux hooks"
        ),
    },
)
