"""The configuration of agent-mux under the name `amux`."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import *  # noqa: F403  # the fixture `amux`
from tests.unit.cli.conftest import Amux

from agent_mux import AgentMuxError, ValidationError
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.config.own_config import CONFIG
from agent_mux.agents.installations import InstallationResolver
from agent_mux.settings.config import CONFIG_KEYS, read_config


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentConfigs:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_MUX_CONFIG_DIR", raising=False)
    (tmp_path / "project").mkdir()
    return AgentConfigs(InstallationResolver(environ={"HOME": str(tmp_path / "home")}, project=tmp_path / "project"))


def test_set_values_are_used_by_runs(configs: AgentConfigs, tmp_path: Path) -> None:
    configs.set("amux", {"approvalMode": "deny", "timeout": 5, "agents.claude.model": "opus"})
    configs.set_field("amux", "approvalMode", "yolo", scope="project")
    path = tmp_path / "home" / ".agent-mux" / "config.json"
    read = read_config(path)
    assert (read.options, read.agents) == ({"approval_mode": "deny", "timeout": 5.0}, {"claude": {"model": "opus"}})
    found = configs.get_field("amux", "approvalMode")
    assert found is not None
    assert (found.value, found.scope) == ("yolo", "project")
    assert configs.validate("amux") == []


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("approvalMode", "never", "one of yolo, prompt, deny"),
        ("timeout", "soon", "a duration with a unit"),
        ("timeot", 5, "did you mean 'timeout'"),
        ("env", {"A": "b"}, "nothing in a settings file"),
        ("maxModelCalls", 0, "whole number >= 1"),
        ("agents", {"claude": 3}, "agents.claude"),
    ],
)
def test_invalid_value_is_not_written(
    configs: AgentConfigs, tmp_path: Path, key: str, value: object, message: str
) -> None:
    with pytest.raises((ValidationError, AgentMuxError), match=message):
        configs.set_field("amux", key, value)
    assert not (tmp_path / "home").exists()


def test_validate_reports_invalid_file(configs: AgentConfigs, tmp_path: Path) -> None:
    path = tmp_path / "home" / ".agent-mux" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"timeot": 3}', "utf-8")
    [problem] = configs.validate("amux")
    assert "did you mean 'timeout'" in problem.message


def test_global_directory_is_not_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AGENT_MUX_CONFIG_DIR", raising=False)
    at_home = AgentConfigs(InstallationResolver(environ={"HOME": str(tmp_path)}, project=tmp_path))
    assert [source.scope for source in at_home.sources("amux")] == ["global"]


def test_every_key_is_described_or_has_several_kinds() -> None:
    assert set(CONFIG_KEYS) - set(CONFIG.fields) == {"stream"}  # "auto", true or false
    schema = AgentConfigs().schema("amux")
    assert schema["title"].startswith("Configuration of agent-mux")


def test_command_line_sets_and_gets_own_config(amux: Amux, tmp_path: Path) -> None:
    assert amux("config", "set", "amux", "approvalMode", "deny").code == 0
    assert json.loads((tmp_path / "config" / "config.json").read_bytes()) == {"approvalMode": "deny"}
    assert amux("config", "get", "amux", "approvalMode").out == "deny\n"
    assert amux("config", "set", "amux", "timeot", "3").code == 7
    assert amux("config", "validate", "amux").code == 0
