"""The test kit of omp: how to install it, its environment, and how the scripted model calls its tools."""

import json
from pathlib import Path

from agent_mux_testing.kits.pi_provider import (
    MODEL,
    OTHER_MODEL,
    PER_CALL,
    PROVIDER,
    provider,
    skill_package,
    subtask,
    write_settings_once,
)
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
    Todo,
    ToolPart,
    UnsupportedPart,
    Write,
    has_field,
    offers,
)
from agent_mux_testing.model_server import ScriptStep, ToolUse
from agent_mux_testing.model_server.script import Block

REPORT = r"{{re:(There are [^\"]+?)\"}}"
"""The last text of the sub-agent."""
DENIED = "its dialog has no field for a reason: the model learns only that the user denied the call"
BROKEN_OFF = "omp does not retry a stream that breaks after its first text"
INSIDE = "omp runs its shell within its own process: no child process is visible"
REPEATED = "the provider's client retries a refused call itself, without reporting it"


def environment(context: KitContext) -> dict[str, str]:
    """Write omp's configuration for the scripted model, and return its environment."""
    name = f"{PROVIDER}/{MODEL}"
    context.write(".omp/agent/models.yml", json.dumps({"providers": {PROVIDER: provider(context, DUMMY_KEY)}}))
    retry = {"maxRetries": 0}  # the provider's client alone retries for half a minute
    write_settings_once(
        context, ".omp/agent/config.yml", {"modelRoles": {"default": name, "smol": name}, "retry": retry}
    )
    return context.minimal(PI_OFFLINE="1", PI_EDIT_VARIANT="replace")


def format_tool_call(part: ToolPart, workspace: Path) -> Block:  # noqa: ARG001, PLR0911  # one line for each part; paths are relative
    """Return the tool call for a part of a scenario."""
    match part:
        case Shell(command):
            return ToolUse("bash", {"command": command})
        case Write(name, content):
            return ToolUse("write", {"path": name, "content": content})
        case Edit(name, old, new):
            return ToolUse("edit", {"path": name, "old_string": old, "new_string": new})
        case Read(name):
            return ToolUse("read", {"path": name})
        case Mcp(tool, arguments, server):
            return ToolUse(f"mcp__{server}_{tool}", dict(arguments))
        case Ask(question, options):
            return ToolUse("ask", {"questions": [_question(question, options)]})
        case Todo(items):
            return ToolUse("todo", {"op": "init", "list": [{"phase": "All", "items": list(items)}]})
        case Delegate(task):
            return ToolUse("task", {"agent": "task", "task": subtask(task)})
    raise UnsupportedPart(f"omp has no tool for {type(part).__name__}")


def _question(question: str, options: tuple[str, ...]) -> dict[str, object]:
    return {"id": "q1", "question": question, "options": [{"label": option} for option in options]}


def split_input(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return arguments and input for a command of the CLI; slash commands go to a prompt of rpc mode."""
    if not words[0].startswith("/"):
        return words, ""
    prompt = {"type": "prompt", "message": " ".join(words)}
    return ("--mode=rpc", "--no-session"), json.dumps(prompt) + "\n"


def _add_mcp(name: str, program: str, words: tuple[str, ...]) -> tuple[str, ...]:
    quoted = (f'"{word}"' if " " in word else word for word in words)
    return ("/mcp", "add", name, "--scope", "user", "--", program, *quoted)


def package(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str, str]:
    """Create a package in a folder; its name is the one in its manifest."""
    return *skill_package(directory), "demo-package"


KIT = LiveKit(
    agent="omp",
    pins=(
        Pin(
            version="18.2.3",
            # The package `bun` contains its program only after its install scripts.
            npm=("@oh-my-pi/pi-coding-agent@18.2.3", "@oven/bun-{os}-{arch}@1.4.5"),
            program="node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js",
            path=("node_modules/@oven/bun-*/bin",),
        ),
    ),
    environment=environment,
    api="chat",
    format_tool_call=format_tool_call,
    per_call=PER_CALL,
    after_delegation=(
        # A sub-agent delivers its report with a tool call; the main agent waits for it with another one.
        ScriptStep(blocks=(ToolUse("yield", {"data": REPORT}),), first=SUBTASK),
        ScriptStep(blocks=(ToolUse("hub", {"op": "wait"}),)),
    ),
    once=("-p",),
    baseline=Path(__file__).with_name("baselines") / "omp.json",
    # These lines show the state of a message at the time of printing: the accumulated message, and the input of a
    # call that streams slowly enough.
    unstable=r"message_(start|update)\S* (message|assistantMessageEvent\.partial)\.content\[\].*|tool_stream_update .*",
    installation=InstallationProbes(
        list_mcp=("/mcp", "list"),
        add_mcp=_add_mcp,
        report_login=("token", PROVIDER),
        write_plugin=package,
        model=f"{PROVIDER}/{OTHER_MODEL}",
        split_input=split_input,
    ),
    probes={
        "extra_args": OptionProbe(value=["--tools=bash,read"], is_seen=offers("bash", but_not="edit")),
        "native_options": OptionProbe(value={"temperature": 0.25}, is_seen=has_field("temperature", 0.25)),
        "thinking_override": OptionProbe(value={"level": "minimal"}, is_seen=has_field("reasoning_effort", "minimal")),
    },
    gaps={
        "run_enters_plan_mode_and_leaves_it": Gap("never", "omp has no plan mode in its protocol"),
        "mode_prompt_after_yolo_asks": Gap("never", "omp is started so that it asks, or not"),
        "plan_mode_changes_nothing": Gap("never", "omp enters its plan mode in its terminal only"),
        "policy_decides_about_read_files": Gap(
            "not_yet", "omp reads files without asking: a policy sees the read but cannot prevent it"
        ),
        "deny_reason_reaches_the_model": Gap("not_yet", DENIED),
        "subagent": Gap("never", "a sub-agent of omp delivers its report with an additional model call"),
        "output_schema": Gap("never", "omp has no output schema for its own answer"),
        "image/one_shot": Gap("never", "omp resizes images and sends them in another format"),
        "image/two_way": Gap("not_yet", "rpc mode takes images inline only; of a file, the agent receives the path"),
        "rate_limited_then_recovers/one_shot": Gap("not_yet", REPEATED),
        "rate_limited_then_recovers/two_way": Gap("not_yet", REPEATED),
        "server_error_permanently/one_shot": Gap("not_yet", REPEATED),
        "server_error_permanently/two_way": Gap("not_yet", REPEATED),
        "dropped_stream_then_recovers/one_shot": Gap("not_yet", BROKEN_OFF),
        "dropped_stream_then_recovers/two_way": Gap("not_yet", BROKEN_OFF),
        "abort_in_a_tool/one_shot": Gap("never", INSIDE),
        "abort_in_a_tool/two_way": Gap("never", INSIDE),
    },
)
