"""A run inherits the configuration of its agent, but not the variables of a session of the agent around us."""

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_mux.run.environment import base_environment
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.options import RunOptions

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "configure-agent-mux.md"

OF_SESSION: Mapping[str, str] = {
    "claude": "CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SSE_PORT CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_PID "
    "CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_SESSION_ID CLAUDE_CODE_SESSION_ACCESS_TOKEN CLAUDE_CODE_CHILD_SESSION "
    "CLAUDE_CODE_CHILD_NOTES_DIR CLAUDE_EFFORT CLAUDE_CODE_BRIDGE_SESSION_ID CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR "
    "CLAUDE_CODE_REMOTE_SESSION_ID CLAUDE_PROJECT_DIR CLAUDE_BG_SESSION_CREDENTIAL AI_AGENT",
    "codex": "CODEX_THREAD_ID CODEX_SESSION_ID CODEX_SANDBOX CODEX_SANDBOX_NETWORK_DISABLED CODEX_CI "
    "CODEX_TOOL_CALL_ID CODEX_NETWORK_PROXY_ACTIVE",
    "gemini": "GEMINI_CLI GEMINI_SESSION_ID GEMINI_CLI_IDE_SERVER_PORT GEMINI_CLI_IDE_AUTH_TOKEN GEMINI_PROJECT_DIR",
    "copilot": "COPILOT_CLI COPILOT_AGENT_SESSION_ID COPILOT_CLI_BINARY_VERSION",
    "opencode": "OPENCODE OPENCODE_PID AGENT OPENCODE_EDITOR_SSE_PORT",
    "pi": "PI_CODING_AGENT PI_SESSION_ID PI_SESSION_FILE PI_MODEL PI_REASONING_LEVEL AI_AGENT",
    "omp": "OMPCODE CLAUDECODE PI_SESSION_FILE PI_TOOL_BRIDGE_TOKEN PI_ARTIFACTS_DIR OMP_LSP_MUX_SOCKET",
    "openclaw": "OPENCLAW_SHELL OPENCLAW_MCP_TOKEN OPENCLAW_CHANNEL_CONTEXT OPENCLAW_SERVICE_MARKER",
    "hermes": "HERMES_SESSION_ID HERMES_SESSION_KEY HERMES_TUI_SIDECAR_URL",
    "cursor": "CURSOR_AGENT",
    "native": "AMUX_AGENT",
}
OF_USERS: Mapping[str, str] = {
    "claude": "CLAUDE_CONFIG_DIR CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_USE_VERTEX ANTHROPIC_API_KEY ANTHROPIC_BASE_URL "
    "ANTHROPIC_MODEL CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_EFFORT_LEVEL CLAUDE_CODE_MAX_OUTPUT_TOKENS CLAUDE_CODE_TMPDIR "
    "CLAUDE_CODE_SUBAGENT_MODEL CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC "
    "CLAUDE_CODE_REMOTE CLAUDE_CODE_SHELL_PREFIX CLAUDE_CODE_ENABLE_TELEMETRY CLAUDE_CODE_TASK_LIST_ID",
    "codex": "CODEX_HOME CODEX_API_KEY CODEX_ACCESS_TOKEN CODEX_SQLITE_HOME CODEX_CA_CERTIFICATE OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY GEMINI_MODEL GEMINI_SANDBOX GEMINI_SYSTEM_MD GEMINI_CLI_HOME GEMINI_CLI_NO_RELAUNCH "
    "GEMINI_CLI_SYSTEM_SETTINGS_PATH GEMINI_CLI_TRUST_WORKSPACE",
    "copilot": "COPILOT_HOME COPILOT_CACHE_HOME COPILOT_GITHUB_TOKEN COPILOT_MODEL COPILOT_AUTO_UPDATE",
    "opencode": "OPENCODE_CONFIG OPENCODE_CONFIG_DIR OPENCODE_API_KEY OPENCODE_PERMISSION OPENCODE_SERVER_PASSWORD",
    "pi": "PI_CODING_AGENT_DIR PI_OFFLINE PI_TELEMETRY PI_CACHE_RETENTION PI_PACKAGE_DIR",
    "omp": "PI_CODING_AGENT_DIR PI_SMOL_MODEL PI_PLAN_MODEL OMP_PROFILE OMP_AUTH_BROKER_TOKEN",
    "openclaw": "OPENCLAW_HOME OPENCLAW_STATE_DIR OPENCLAW_CONFIG_PATH OPENCLAW_GATEWAY_TOKEN OPENCLAW_PROFILE",
    "hermes": "HERMES_HOME HERMES_YOLO_MODE HERMES_MANAGED_DIR",
    "cursor": "CURSOR_API_KEY CURSOR_CONFIG_DIR",
    "native": "AMUX_AGENT_HOME AMUX_AGENT_MODEL",
}


def _adapter(agent: str) -> Adapter:
    adapter: Adapter = importlib.import_module(f"agent_mux_adapters.{agent}").ADAPTER
    return adapter


@pytest.mark.parametrize("agent", OF_SESSION)
def test_variables_of_a_session_are_not_inherited(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OF_SESSION[agent].split():
        monkeypatch.setenv(name, "of-the-outer-session")
    environ = base_environment(RunOptions(agent=agent, prompt="go"), _adapter(agent))
    assert not environ.keys() & set(OF_SESSION[agent].split())
    assert environ["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("agent", OF_USERS)
def test_configuration_is_inherited(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OF_USERS[agent].split():
        monkeypatch.setenv(name, "of-the-user")
    environ = base_environment(RunOptions(agent=agent, prompt="go"), _adapter(agent))
    assert environ.keys() >= set(OF_USERS[agent].split())


@pytest.mark.parametrize("agent", OF_SESSION)
def test_variables_of_the_options_reach_the_agent(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = OF_SESSION[agent].split()[0]
    monkeypatch.setenv(name, "of-the-outer-session")
    environ = base_environment(RunOptions(agent=agent, prompt="go", env={name: "mine"}), _adapter(agent))
    assert environ[name] == "mine"


@pytest.mark.parametrize("agent", OF_SESSION)
def test_page_lists_the_variables_of_each_agent(agent: str) -> None:
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {agent} |"))
    assert tuple(re.findall(r"`([A-Z_*]+)`", row.split("|")[2])) == _adapter(agent).session_variables
