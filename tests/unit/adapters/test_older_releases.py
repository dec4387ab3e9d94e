"""Recordings of older releases have the same outcome as those of today's: the shapes of their lines differ."""

from pathlib import Path

import pytest

from agent_mux.events import AgentEvent
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance.recorded import Recorded

FIXTURES = Path(__file__).parents[3] / "fixtures"
ADAPTERS = AdapterRegistry()
TOOLS = [
    "claude/1.0.120/release_two_way_tools",
    "claude/2.0.76/release_two_way_tools",
    "codex/0.80.0/release_as_tools",
    "codex/0.80.0/release_tools",
    "copilot/1.0.40/release_hl_tools",
    "copilot/1.0.54/release_hl_tools",
    "gemini/0.15.4/release_tools",
    "gemini/0.36.0/release_acp_tools",
    "opencode/1.2.27/release_bridge_tools",
    "pi/0.52.12/release_json_tools",
    "pi/0.52.12/release_rpc_tools",
]
WITHOUT_EXIT_CODES = {"claude/1.0.120/release_two_way_tools"}
"""Recordings in which the agent does not report the exit code of a command that failed."""


def recorded(name: str) -> Recorded:
    return Recorded(ADAPTERS.get(name.partition("/")[0]), FIXTURES / name)


def of(name: str, kind: str) -> list[AgentEvent]:
    return [event for event in recorded(name).played.events if event.type == kind]


@pytest.mark.parametrize("name", TOOLS)
def test_edit_and_two_commands_are_reported(name: str) -> None:
    played = recorded(name).played
    assert played.verdict.exit_reason == "completed"
    assert [event.text for event in of(name, "message_stop")] == ["Writing.", "Now run.", "All done."]  # type: ignore[union-attr]
    assert len(of(name, "tool_call_start")) == 4
    assert (len(of(name, "tool_result")), len(of(name, "tool_error"))) == (3, 1)
    assert len(of(name, "shell_start")) == 2
    failed = -1 if name in WITHOUT_EXIT_CODES else 3
    assert [event.exit_code for event in of(name, "shell_exit")] == [0, failed]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", TOOLS)
def test_no_line_is_unknown(name: str) -> None:
    assert recorded(name).played.ledger.unknown == {}


@pytest.mark.parametrize("name", ["claude/1.0.120/release_err401", "copilot/1.0.54/release_hl_err401"])
def test_refused_key_is_an_authentication_error_and_no_message(name: str) -> None:
    failure = recorded(name).played.verdict.failure
    assert failure is not None
    assert failure.code == "AUTH_ERROR"
    assert of(name, "message_stop") == []
    assert len(of(name, "auth_error")) == 1


@pytest.mark.parametrize("name", ["opencode/1.2.27/release_bridge_deny", "copilot/1.0.54/release_hl_deny"])
def test_denied_command_does_not_run(name: str) -> None:
    assert (len(of(name, "approval_denied")), len(of(name, "tool_error"))) == (1, 1)
    assert of(name, "shell_start") == []


def test_tokens_of_the_first_run_of_a_session_are_counted_once() -> None:
    [usage] = of("codex/0.80.0/release_as_resume", "token_usage")
    assert (usage.input_tokens, usage.output_tokens) == (70, 20)  # type: ignore[union-attr]


def test_approved_command_starts_before_its_result_although_the_request_names_no_call() -> None:
    events = recorded("claude/1.0.120/release_two_way_tools").played.events
    kinds = [event.type for event in events if event.type in {"approval_granted", "shell_start", "shell_exit"}]
    assert kinds[-3:] == ["approval_granted", "shell_start", "shell_exit"]


@pytest.mark.parametrize(
    "name", ["claude/2.0.76/release_two_way_tools", "codex/0.80.0/release_as_tools", "copilot/1.0.40/release_hl_tools",
             "gemini/0.36.0/release_acp_tools", "opencode/1.2.27/release_bridge_tools"]
)  # fmt: skip
def test_session_start_has_the_version_that_the_agent_reports(name: str) -> None:
    [start] = of(name, "session_start")
    assert start.agent_version == name.split("/")[1]  # type: ignore[union-attr]


VERSIONED = [adapter for adapter in ADAPTERS if adapter.tested_versions]


@pytest.mark.parametrize("adapter", VERSIONED, ids=lambda adapter: adapter.agent)
def test_every_tested_version_has_recordings(adapter: Adapter) -> None:
    recorded_versions = {path.name for path in (FIXTURES / adapter.agent).iterdir()}
    assert set(adapter.tested_versions) <= recorded_versions
