"""Reading, validating and changing an agent's configuration."""

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sample_agent import AGENT, INSTALLATION, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.sdk.config import AgentConfig, ConfigField, ConfigFile
from agent_mux.sdk.installation import AgentInstallation

GLOBAL = """\
# mine
mode = "slow"  # no hurry
places = ["here"]

[limits]
depth = 3
"""
PROJECT = '{\n  // ours\n  "limits": {"width": 2},\n  "mode": "fast"\n}\n'


@pytest.fixture
def configs(tmp_path: Path) -> AgentConfigs:
    path = tmp_path / "home" / ".wombat" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(GLOBAL, "utf-8")
    found = sample_resolver(tmp_path)
    (tmp_path / "project" / "wombat.json").write_text(PROJECT, "utf-8")
    return AgentConfigs(found)


def test_project_takes_precedence_and_tables_are_merged(configs: AgentConfigs) -> None:
    assert configs.get("wom") == {"mode": "fast", "places": ["here"], "limits": {"depth": 3, "width": 2}}
    assert configs.get(AGENT, scope="global")["mode"] == "slow"
    assert configs.get(AGENT, scope="local") == {}


def test_field_comes_with_the_file_that_sets_it(configs: AgentConfigs, tmp_path: Path) -> None:
    mode, depth = configs.get_field(AGENT, "mode"), configs.get_field(AGENT, "limits.depth")
    assert mode is not None
    assert (mode.value, mode.scope, mode.path) == ("fast", "project", tmp_path / "project" / "wombat.json")
    assert depth is not None
    assert (depth.value, depth.scope) == (3, "global")
    limits = configs.get_field(AGENT, "limits")
    assert limits is not None
    assert limits.value == {"depth": 3, "width": 2}
    assert configs.get_field(AGENT, "limits.height") is None
    assert configs.get_field(AGENT, "mode", scope="local") is None


def test_set_and_unset_restore_every_byte(configs: AgentConfigs, tmp_path: Path) -> None:
    path = tmp_path / "home" / ".wombat" / "config.toml"
    change = configs.set_field(AGENT, "limits.speed", 7)
    assert change.is_needed
    assert path.read_text("utf-8") == GLOBAL + "speed = 7\n"
    assert "+speed = 7" in change.diff()
    configs.unset_field(AGENT, "limits.speed")
    assert path.read_text("utf-8") == GLOBAL
    assert not configs.unset_field(AGENT, "limits.speed").is_needed


def test_several_fields_are_set_atomically(configs: AgentConfigs, tmp_path: Path) -> None:
    path = tmp_path / "project" / "wombat.json"
    configs.set(AGENT, {"dry": True, "model.name": "big"}, scope="project")
    assert configs.get(AGENT, scope="project") == {
        "limits": {"width": 2}, "mode": "fast", "dry": True, "model": {"name": "big"},
    }  # fmt: skip
    before = path.read_bytes()
    with pytest.raises(ValidationError) as caught:
        configs.set(AGENT, {"places": ["x"], "mode": "wild", "dry": "yes", "limits.depth": True}, scope="project")
    assert [field.path for field in caught.value.fields] == ["mode", "dry", "limits.depth"]
    assert path.read_bytes() == before


def test_dry_run_writes_nothing(configs: AgentConfigs, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    change = configs.set_field(AGENT, "dry", True, dry_run=True)
    assert "+dry = true" in change.diff()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_symlink_and_permissions_are_preserved(configs: AgentConfigs, tmp_path: Path) -> None:
    path, real = tmp_path / "home" / ".wombat" / "config.toml", tmp_path / "dotfiles.toml"
    path.rename(real)
    real.chmod(0o640)
    path.symlink_to(real)
    configs.set_field(AGENT, "dry", True)
    assert path.is_symlink()
    assert "dry = true" in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_new_file_is_private_except_in_projects(tmp_path: Path) -> None:
    configs = AgentConfigs(sample_resolver(tmp_path))
    old = os.umask(0o022)
    try:
        configs.set_field(AGENT, "dry", True)
        configs.set_field(AGENT, "dry", True, scope="project")
    finally:
        os.umask(old)
    mine, ours = tmp_path / "home" / ".wombat" / "config.toml", tmp_path / "project" / "wombat.json"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (mine, mine.parent, ours)] == [0o600, 0o700, 0o644]


def test_reading_creates_no_files(tmp_path: Path) -> None:
    configs = AgentConfigs(sample_resolver(tmp_path))
    assert configs.get(AGENT) == {}
    assert configs.validate(AGENT) == []
    assert configs.model(AGENT) is None
    configs.unset_field(AGENT, "dry")
    assert list(tmp_path.rglob("*")) == [tmp_path / "project"]


def test_invalid_file_is_reported_with_position_and_not_changed(configs: AgentConfigs, tmp_path: Path) -> None:
    path = tmp_path / "project" / "wombat.json"
    path.write_text('{\n  "mode": fast\n}\n', "utf-8")
    for call in (lambda: configs.get(AGENT), lambda: configs.set_field(AGENT, "dry", True, scope="project")):
        with pytest.raises(AgentMuxError, match=r"wombat\.json: line 2, column 11: 'fast' is not a value") as bad:
            call()
        assert bad.value.code == "CONFIG_ERROR"
    assert path.read_text("utf-8") == '{\n  "mode": fast\n}\n'
    [problem] = configs.validate(AGENT)
    assert (problem.scope, problem.path, problem.field) == ("project", path, None)


def test_validate_reports_invalid_values(configs: AgentConfigs, tmp_path: Path) -> None:
    (tmp_path / "project" / "wombat.json").write_text('{"mode": "wild", "places": {}, "limits": {"depth": 1}}', "utf-8")
    found = configs.validate(AGENT)
    assert [(one.field, one.message) for one in found] == [("mode", "one of fast, slow"), ("places", "a list")]


def test_model_can_be_several_fields(configs: AgentConfigs) -> None:
    assert configs.model(AGENT) is None
    configs.set_model(AGENT, "big")
    configs.set_model(AGENT, "small", scope="project")
    assert configs.get(AGENT, scope="global")["model"] == {"name": "big", "kind": "any"}
    setting = configs.model(AGENT)
    assert setting is not None
    assert (setting.value, setting.scope) == ("small", "project")
    with pytest.raises(ValidationError, match="a name without blanks"):
        configs.set_model(AGENT, "big one")


def test_schema_contains_the_fields(configs: AgentConfigs) -> None:
    schema = configs.schema(AGENT)
    assert schema["properties"]["limits"]["properties"]["depth"] == {"type": "number", "description": "metres"}
    assert schema["properties"]["mode"]["enum"] == ["fast", "slow"]


def test_missing_part_raises_capability_error(tmp_path: Path, configs: AgentConfigs) -> None:
    with pytest.raises(CapabilityError, match="wombat does not support configuration through agent-mux"):
        AgentConfigs(sample_resolver(tmp_path, AgentInstallation())).get(AGENT)
    with pytest.raises(CapabilityError, match="scope 'local'; it has: global, project"):
        configs.set_field(AGENT, "dry", True, scope="local")
    with pytest.raises(ValidationError, match="a dotted name"):
        configs.get_field(AGENT, "a..b")
    with pytest.raises(AgentMuxError, match="did you mean 'wombat'"):
        configs.get("wombt")


def test_written_model_can_depend_on_the_file(tmp_path: Path) -> None:
    def write(model: str, data: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
        return {("model",) if isinstance(data.get("model"), str) else ("model", "name"): model}

    assert INSTALLATION.config is not None
    assert INSTALLATION.config.model is not None
    field = replace(INSTALLATION.config.model, read=lambda data: str(data.get("model")), write=write)
    configs = AgentConfigs(
        sample_resolver(tmp_path, replace(INSTALLATION, config=replace(INSTALLATION.config, model=field)))
    )
    (tmp_path / "project" / "wombat.json").write_text('{"model": "old"}', "utf-8")
    configs.set_model(AGENT, "new", scope="project")
    configs.set_model(AGENT, "new")
    assert configs.get(AGENT, scope="project") == {"model": "new"}
    assert configs.get(AGENT, scope="global") == {"model": {"name": "new"}}


def test_last_existing_file_of_a_scope_is_changed(tmp_path: Path) -> None:
    def file(name: str, *, is_optional: bool) -> ConfigFile:
        return ConfigFile(scope="global", format="json", path=lambda place: place.home / name, is_optional=is_optional)

    files = (file("old.json", is_optional=True), file("new.json", is_optional=False), file("x.json", is_optional=True))
    fields = {"a": ConfigField(kind="string", or_kinds=("table",), meaning="whatever")}
    configs = AgentConfigs(sample_resolver(tmp_path, AgentInstallation(config=AgentConfig(files=files, fields=fields))))
    home = tmp_path / "home"
    home.mkdir()
    assert [source.path.name for source in configs.sources(AGENT)] == ["new.json"]
    assert configs.set_field(AGENT, "a", "text", dry_run=True).path == home / "new.json"
    (home / "old.json").write_text('{"b": 1}', "utf-8")
    assert configs.set_field(AGENT, "a", "text").path == home / "old.json"
    (home / "x.json").write_text("{}", "utf-8")
    assert configs.set_field(AGENT, "a", {"c": 2}).path == home / "x.json"
    assert configs.validate(AGENT) == []
    assert configs.get(AGENT) == {"a": {"c": 2}, "b": 1}
    assert configs.unset_field(AGENT, "b").path == home / "old.json"  # the file that sets it
    assert configs.get(AGENT) == {"a": {"c": 2}}
