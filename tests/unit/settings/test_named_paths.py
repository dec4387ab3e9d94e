"""Relative paths in options start at the caller's directory, or at that of their file, never at the run's `cwd`."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMux, McpServer
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.named_paths import start_at, with_absolute_files


@pytest.fixture
def caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the caller, with another one beside it."""
    for name in ("caller", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "caller")
    return tmp_path / "caller"


@pytest.fixture
def mux(tmp_path: Path) -> AgentMux:
    (tmp_path / "config" / "profiles").mkdir(parents=True)
    return AgentMux(config_dir=tmp_path / "config", project_config_dir=tmp_path / "project")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": "scripted:fix.toml"}, {"model": "scripted:{}/fix.toml"}),
        ({"model": "scripted:../fix.toml"}, {"model": "scripted:{}/../fix.toml"}),
        ({"model": "replay:strict:a.jsonl"}, {"model": "replay:strict:{}/a.jsonl"}),
        ({"fallback_model": "scripted:b.toml"}, {"fallback_model": "scripted:{}/b.toml"}),
        ({"model": "scripted:demo"}, {"model": "scripted:demo"}),
        ({"model": "anthropic:claude-x"}, {"model": "anthropic:claude-x"}),
        ({"model": "scripted:/abs.toml"}, {"model": "scripted:/abs.toml"}),
        ({"fallback": ["native:scripted:c.toml", "pi:x"]}, {"fallback": ["native:scripted:{}/c.toml", "pi:x"]}),
        (
            {"native_options": {"agentFile": "a.md", "skills": ["s", "~/t"], "openapi": [{"document": "o"}, "http://x"]}},
            {"native_options": {
                "agentFile": "{}/a.md", "skills": ["{}/s", "~/t"], "openapi": [{"document": "{}/o"}, "http://x"],
            }},
        ),
    ],
)  # fmt: skip
def test_paths_in_a_call_start_at_the_directory_of_the_caller(
    mux: AgentMux, caller: Path, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    options = mux.resolve_options(agent="native", prompt="p", cwd=caller.parent / "other", **given).options
    for name, value in expected.items():
        wanted = json.loads(json.dumps(value).replace("{}/../", f"{caller.parent}/").replace("{}", str(caller)))
        assert getattr(options, name) == wanted


def test_paths_in_a_file_start_at_its_directory(mux: AgentMux, caller: Path, tmp_path: Path) -> None:
    config, profile = tmp_path / "config" / "config.json", tmp_path / "config" / "profiles" / "q.json"
    config.write_text(
        json.dumps(
            {
                "agents": {"native": {"model": "scripted:m.toml"}},
                "addDirs": ["../other"],
                "nativeOptions": {"skills": ["s"], "agentFile": "weaker.md"},
            }
        ),
        "utf-8",
    )
    profile.write_text(json.dumps({"nativeOptions": {"agentFile": "a.md"}}), "utf-8")
    options = mux.resolve_options(
        agent="native", prompt="p", profile="q", native_options={"agentsDocs": ["d.md"]}, cwd=caller.parent / "other"
    ).options
    assert options.model == f"scripted:{config.parent}/m.toml"
    assert options.add_dirs == (str(tmp_path / "other"),)
    assert options.native_options == {
        "skills": [f"{config.parent}/s"],
        "agentFile": f"{profile.parent}/a.md",
        "agentsDocs": [f"{caller}/d.md"],
    }


def test_each_key_of_a_profile_starts_at_the_file_that_sets_it(mux: AgentMux, caller: Path, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    mux.profiles.set("q", {"native_options": {"agentFile": "a.md", "skills": ["s"]}})
    mux.profiles.set("q", {"native_options": {"skills": ["t"]}}, scope="project")
    options = mux.resolve_options(agent="native", prompt="p", profile="q", cwd=caller).options
    assert options.native_options == {
        "agentFile": f"{tmp_path}/config/profiles/a.md",
        "skills": [f"{tmp_path}/project/profiles/t"],
    }


def test_a_client_of_a_server_has_a_directory_of_its_own(tmp_path: Path, caller: Path) -> None:
    mux = AgentMux(config_dir=tmp_path / "config", project_config_dir=tmp_path / "project", base_dir=tmp_path / "root")
    assert (
        mux.resolve_options(agent="native", prompt="p", model="scripted:x").options.model
        == f"scripted:{tmp_path}/root/x"
    )
    assert caller.is_dir()


def test_a_program_of_the_caller_is_found_from_another_directory(mux: AgentMux, caller: Path) -> None:
    (caller / "server").write_text("#!/bin/sh\n", "utf-8")
    servers = (McpServer("a", command="./server"), McpServer("b", command="./missing"), McpServer("c", command="npx"))
    options = mux.resolve_options(agent="claude", prompt="p", mcp_servers=servers, cwd=caller.parent / "other").options
    assert [server.command for server in options.mcp_servers] == [f"{caller}/server", "./missing", "npx"]
    for given, resolved in {"./server": f"{caller}/server", "server": "server", "./s.jsonl": "./s.jsonl"}.items():
        assert mux.resolve_options(agent="pi", prompt="p", session_id=given).options.session_id == resolved


def test_paths_of_all_agents_start_at_the_directory_of_the_caller(mux: AgentMux, caller: Path) -> None:
    (caller / "a.png").write_bytes(b"")
    options = mux.resolve_options(
        agent="claude",
        prompt="p",
        cwd=caller.parent / "other",
        attachments=[{"file_path": "a.png"}, {"url": "https://x/a.png"}],
        agents_doc="RULES.md",
        skills=["s"],
        add_dirs=["../other"],
        journal="runs/a.journal",
    ).options
    assert [one.file_path for one in options.attachments] == [f"{caller}/a.png", None]
    assert options.agents_doc == caller / "RULES.md"
    assert (options.skills, options.add_dirs) == ((f"{caller}/s",), (f"{caller.parent}/other",))
    assert options.journal == caller / "runs" / "a.journal"


def test_every_adapter_with_named_files_can_make_them_absolute() -> None:
    from agent_mux.sdk.options import RunOptions

    adapters = AdapterRegistry()
    for agent in adapters.names():
        adapter = adapters.get(agent)
        for fields in ({"model": "scripted:x"}, {"prompt": "x.jsonl"}, {"native_options": {"agentFile": "x"}}):
            named = adapter.named_files(RunOptions(agent=agent, **{"prompt": "demo", **fields}))  # type: ignore[arg-type]
            changed = with_absolute_files(fields, agent, adapters, start_at(lambda: Path("/base")))
            assert (changed != fields) == bool(named), (agent, fields)


@pytest.mark.parametrize("value", [None, 5, [], {}, b"x"])
def test_values_of_other_types_are_left_to_the_validation(value: Any) -> None:
    fields = {"model": value, "fallback_model": value, "native_options": value, "fallback": value, "prompt": value}
    assert with_absolute_files(fields, "native", AdapterRegistry(), start_at(lambda: Path("/b"))) == fields
