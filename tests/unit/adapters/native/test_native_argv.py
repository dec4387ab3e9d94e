"""How a program is started: by its command alone; the options of the run are sent on standard input."""

import json
import sys
from typing import Any

import pytest

from agent_mux.sdk import ValidationError
from agent_mux.sdk.adapter import SpawnEnvironment
from agent_mux.sdk.codec import WriteStdin
from agent_mux.sdk.options import Attachment, McpServer, RunOptions
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec
from agent_mux_adapters.native import ADAPTER
from agent_mux_adapters.native.argv import build_context, build_spawn_args


def environment(executable: str, *arguments: str) -> SpawnEnvironment:
    return SpawnEnvironment(executable=executable, arguments=arguments, temp_dir="/tmp/x", environ={})


def started(**options: Any) -> list[dict[str, Any]]:
    """Return the lines that the codec sends first."""
    asked = RunOptions(agent="native", **{"prompt": "hi", **options})
    context = build_context(asked, build_spawn_args(asked, environment("/bin/amux-agent")))
    return [json.loads(step.data) for step in AgentEventsCodec(context).start() if isinstance(step, WriteStdin)]


def test_embedded_agent_starts_with_the_control_flag_only() -> None:
    options = RunOptions(agent="native", prompt="--secret", model="m", session_id="--x", system_prompt="y")
    assert build_spawn_args(options, environment("/bin/amux-agent")).argv == ("/bin/amux-agent", "--control")


def test_without_a_program_the_interpreter_runs_the_module() -> None:
    spawn = build_spawn_args(RunOptions(agent="native", prompt="hi"), environment(sys.executable))
    assert spawn.argv == (sys.executable, "-m", "agent_loop", "--control")
    assert ADAPTER.executables[0] == "amux-agent"
    assert ADAPTER.executables[-1] == sys.executable


def test_command_starts_unchanged_and_the_core_counts_turns() -> None:
    options = RunOptions(agent="native", prompt="hi", command=("my-agent", "--flag"))
    spawn = build_spawn_args(options, environment("/bin/my-agent", "--flag"))
    assert spawn.argv == ("/bin/my-agent", "--flag")
    assert not spawn.counts_turns


def test_first_line_contains_given_options_only() -> None:
    assert started() == [
        {"type": "start", "protocol": 1, "approvalMode": "prompt"},
        {"type": "prompt", "id": "1", "text": "hi"},
    ]


def test_skills_of_the_run_are_readable() -> None:
    start, _ = started(skills=("/s/singing", "/s/dancing/SKILL.md"))
    assert start["readable"] == ["/s/singing", "/s/dancing"]


def test_mcp_servers_are_in_the_first_line() -> None:
    servers = [McpServer("a", command="x", args=("y",), env={"K": "v"}), McpServer("b", "sse", url="http://b")]
    start, _ = started(mcp_servers=servers, interactive=True, no_session=True, max_tokens_total=5, top_k=2)
    assert start["mcpServers"] == [
        {"name": "a", "transport": "stdio", "command": "x", "args": ["y"], "env": {"K": "v"}},
        {"name": "b", "transport": "sse", "url": "http://b", "headers": {}},
    ]
    assert (start["interactive"], start["noSession"], start["maxTokensTotal"], start["topK"]) == (True, True, 5, 2)


def test_images_are_sent_and_other_files_mentioned() -> None:
    attachments = (
        Attachment(base64="aGk=", mime_type="image/png"),
        Attachment(file_path="/a/b.txt"),
        Attachment(url="https://x/y"),
    )
    _, prompt = started(attachments=attachments)
    assert prompt["images"] == [{"mimeType": "image/png", "data": "aGk="}]
    assert prompt["text"] == "hi\n\nAttached file: /a/b.txt\nAttached file: https://x/y"


def test_fallback_model_is_a_list_of_the_first_line() -> None:
    assert started(fallback_model="anthropic:x")[0]["fallbackModels"] == ["anthropic:x"]


def test_settings_of_the_embedded_agent_are_native_options() -> None:
    settings: dict[str, Any] = {"sandbox": "auto", "sandboxNetwork": True, "acceptEdits": True}
    settings |= {"trustProject": True, "trustProjectSkills": True, "skillShell": False, "maxActiveSkills": 2}
    services = ["api.yaml", {"document": "https://a/b.json", "auth": {"type": "bearer", "variable": "TOKEN"}}]
    settings |= {"openapi": services, "agent": "plan", "agentFile": "a.yaml"}
    assert settings.items() <= started(native_options=settings)[0].items()


@pytest.mark.parametrize(
    "settings",
    [
        {"sandbox": "yes"},
        {"openapi": [{}]},
        {"agent": ""},
        {"agentFile": 1},
        {"sandboxNetwork": 1},
        {"acceptEdits": "true"},
        {"trustProject": "yes"},
        {"trustProjectSkills": "yes"},
        {"skillShell": 1},
        {"maxActiveSkills": 0},
        {"maxActiveSkills": True},
    ],
)
def test_invalid_settings_of_the_embedded_agent_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"native_options.{next(iter(settings))}"):
        started(native_options=settings)
