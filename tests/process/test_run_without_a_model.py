"""The embedded agent without a configured model: never a success, whoever starts it, and always with the next step."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from tests.process.acp_editor import start_editor
from tests.process.embedded_agent import Sandbox, violations
from tests.process.installed_command import Installed
from tests.process.mcp_client import delegator
from tests.service.serving import serving
from tests.unit.embedded.providers.wires import KEY, served, text

from agent_loop.providers.access import VARIABLES
from agent_loop.providers.default_models import DEFAULT_MODELS
from agent_mux import RemoteMux

NEXT_STEPS = ("set ANTHROPIC_API_KEY", "--model provider:model", "--model scripted:PATH")
NOT_AUTHENTICATED = 5


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def without_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the keys of this process and its agent's settings."""
    for names in VARIABLES.values():
        for name in names.api_key:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AMUX_AGENT_MODEL", raising=False)
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "agent"))


def assert_names_next_steps(text: str) -> None:
    assert [part for part in NEXT_STEPS if part not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "key", "address"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("google", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ],
)
def test_key_that_is_set_selects_the_model(installed: Installed, provider: str, key: str, address: str) -> None:
    with served(text("Hello.")) as server:
        url = f"{server.url}/v1" if provider == "openai" else server.url
        done = installed.run("run", "native", "hi", "--json", **{key: KEY, address: url})
    *events, result = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, result["text"], result["model"]) == (0, "Hello.", DEFAULT_MODELS[provider])
    notes = [event["message"] for event in events if event["type"] == "debug"]
    assert f"no model is named; using {provider}:{DEFAULT_MODELS[provider]}, because {key} is set" in notes


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_amux_agent_prints_the_next_step_and_exits_with_5(sandbox: Sandbox, flags: tuple[str, ...]) -> None:
    done = sandbox.run(*flags, "hi")
    assert (done.returncode, done.stdout) == (NOT_AUTHENTICATED, "")
    assert_names_next_steps(done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_control_mode_reports_an_auth_error(sandbox: Sandbox) -> None:
    done = sandbox.run("--control", stdin='{"type":"start","protocol":1}\n{"type":"prompt","text":"hi"}\n')
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, violations(lines)) == (0, "", [])
    [error] = [line for line in lines if line["type"] == "auth_error"]
    assert_names_next_steps(error["message"])
    assert "message_stop" not in {line["type"] for line in lines}


def test_amux_run_fails_with_exit_code_5(installed: Installed) -> None:
    done = installed.run("run", "native", "hi", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == NOT_AUTHENTICATED
    assert (result["exitReason"], result["error"]["code"], result["text"]) == ("failed", "AUTH_ERROR", "")
    assert_names_next_steps(result["error"]["message"])


@pytest.mark.slow
def test_conversation_at_a_terminal_ends_with_exit_code_5(installed: Installed) -> None:
    with installed.terminal("run", "-i", "native", "hi") as terminal:
        assert terminal.finish() == NOT_AUTHENTICATED
        assert_names_next_steps(" ".join(terminal.output.split()))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_editor_gets_an_authentication_error(installed: Installed) -> None:
    async with start_editor("--agent", "native", environment=installed.environment(""), cwd=installed.home) as editor:
        session = await editor.begin(installed.home)
        with pytest.raises(RequestError) as raised:
            await editor.ask(session, "hi")
    assert raised.value.code == -32000
    assert_names_next_steps(str(raised.value))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_delegated_run_fails(installed: Installed) -> None:
    async with delegator(installed) as tool:
        started = await tool("start_run", agent="native", prompt="hi")
        done: Any = await tool.watch_to_end(started["runId"])
    assert done["result"]["exitReason"] == "failed"
    assert_names_next_steps(json.dumps(done["result"]))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_run_of_a_service_fails(tmp_path: Path) -> None:
    with serving(tmp_path / "mux", roots=[tmp_path]) as server:
        async with RemoteMux(server.url, default_agent="native") as mux:
            result = await mux.run(prompt="hi", cwd=tmp_path)
    assert (result.exit_reason, result.text) == ("failed", "")
    assert result.error is not None
    assert result.error.code == "AUTH_ERROR"
    assert_names_next_steps(result.error.message)
