"""Profiles: created, merged from two scopes, changed, applied, deleted."""

import json
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMux, BlockingAgentMux
from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.sdk.options import RetryPolicy, RunOptions
from agent_mux.settings.profiles import Profiles, Scope


@pytest.fixture
def places(tmp_path: Path) -> dict[Scope, Path]:
    return {"project": tmp_path / "project", "global": tmp_path / "global"}


@pytest.fixture
def profiles(places: Mapping[Scope, Path], tmp_path: Path) -> Profiles:
    return Profiles(lambda: places, locks=tmp_path / "locks")


def code_of(raised: Any) -> str:
    return str(raised.value.code)


def test_set_and_get(profiles: Profiles, places: Mapping[Scope, Path]) -> None:
    path = profiles.set("fast", {"model": "m", "timeout": 60, "retry_policy": RetryPolicy(max_attempts=5)})
    assert path == places["global"] / "profiles" / "fast.json"
    assert json.loads(path.read_text()) == {"model": "m", "timeout": "60s", "retryPolicy": {"maxAttempts": 5}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    profile = profiles.get("fast")
    assert profile.fields == {"model": "m", "timeout": 60.0, "retry_policy": {"max_attempts": 5}}
    assert profile.content == {"model": "m", "timeout": 60000, "retryPolicy": {"maxAttempts": 5}}
    assert profile.sources == dict.fromkeys(("model", "timeout", "retryPolicy.maxAttempts"), "global")
    assert not places["project"].exists()


def test_fields_are_changed_removed_or_replaced(profiles: Profiles) -> None:
    profiles.set("fast", {"model": "m", "max_model_calls": 3})
    profiles.set("fast", {"model": "n", "max_model_calls": None, "temperature": 0.5})
    assert profiles.get("fast").fields == {"model": "n", "temperature": 0.5}
    profiles.set("fast", {"top_k": 1}, replace=True)
    assert profiles.get("fast").fields == {"top_k": 1}


def test_project_is_merged_over_global(profiles: Profiles, places: Mapping[Scope, Path]) -> None:
    profiles.set("fast", {"model": "g", "tags": ["g"], "retry_policy": {"max_attempts": 2, "jitter": 0.5}})
    profiles.set("fast", {"tags": ["p"], "retry_policy": {"jitter": 0.0}}, scope="project")
    profile = profiles.get("fast")
    assert profile.content == {"model": "g", "tags": ["p"], "retryPolicy": {"maxAttempts": 2, "jitter": 0.0}}
    assert profile.fields["retry_policy"] == {"max_attempts": 2, "jitter": 0.0}
    assert profile.sources == {
        "model": "global", "tags": "project", "retryPolicy.maxAttempts": "global", "retryPolicy.jitter": "project",
    }  # fmt: skip
    assert profile.layer().sources == {
        "model": str(places["global"] / "profiles" / "fast.json"),
        "tags": str(places["project"] / "profiles" / "fast.json"),
        "retry_policy": str(places["project"] / "profiles" / "fast.json"),
    }
    assert profiles.get("fast", scope="global").content["tags"] == ["g"]


def test_names_of_both_scopes_are_listed(profiles: Profiles, places: Mapping[Scope, Path]) -> None:
    assert (profiles.names(), profiles.list()) == ((), [])
    profiles.set("b", {"model": "m"})
    profiles.set("a", {"model": "m"}, scope="project")
    profiles.set("b", {"model": "n"}, scope="project")
    (places["global"] / "profiles" / "no profile.json").write_text("noise")
    (places["global"] / "profiles" / "notes.txt").write_text("noise")
    assert profiles.names() == ("a", "b")
    assert [(one.name, list(one.paths)) for one in profiles.list()] == [
        ("a", ["project"]), ("b", ["project", "global"]),
    ]  # fmt: skip


def test_unknown_name_is_reported_with_the_nearest(profiles: Profiles) -> None:
    profiles.set("review", {"model": "m"})
    for ask in (profiles.get, profiles.delete):
        with pytest.raises(AgentMuxError, match="did you mean 'review'") as raised:
            ask("reveiw")
        assert code_of(raised) == "PROFILE_NOT_FOUND"
    with pytest.raises(AgentMuxError, match="known: review"):
        profiles.get("zzz")
    with pytest.raises(AgentMuxError, match="in the project directory; known: none"):
        profiles.get("review", scope="project")


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "x" * 65, "é", "a.json"])
def test_invalid_names_are_rejected(profiles: Profiles, name: str, tmp_path: Path) -> None:
    for attempt in (profiles.get, profiles.delete, lambda bad: profiles.set(bad, {"model": "m"})):
        with pytest.raises(ValidationError, match="64 letters"):
            attempt(name)
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "x"},
        {"env": {"A": "b"}},
        {"modell": "x"},
        {"timeout": -1},
        {"tags": 3},
        {"model": "\udcff"},
        {"output_schema": {"x": object()}},
    ],
)
def test_invalid_field_is_not_written(profiles: Profiles, fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        profiles.set("fast", fields)
    assert list(tmp_path.rglob("*.json")) == []
    path = profiles.set("fast", {"model": "m"})
    with pytest.raises(ValidationError):
        profiles.set("fast", fields)
    assert json.loads(path.read_text()) == {"model": "m"}


@pytest.mark.parametrize("text", ["{", "[]", '{"prompt": "x"}', '{"model": 3}'])
def test_invalid_file_is_reported_and_not_changed(profiles: Profiles, places: Mapping[Scope, Path], text: str) -> None:
    path = places["global"] / "profiles" / "bad.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    for attempt in (profiles.get, lambda name: profiles.set(name, {"model": "m"} if text != '{"model": 3}' else {})):
        with pytest.raises(AgentMuxError, match=str(path)) as raised:
            attempt("bad")
        assert code_of(raised) == "CONFIG_ERROR"
    assert path.read_text() == text


def test_formatting_is_preserved(profiles: Profiles, places: Mapping[Scope, Path]) -> None:
    path = places["global"] / "profiles" / "mine.json"
    path.parent.mkdir(parents=True)
    path.write_text('{ "model" : "m",\n\n     "tags": ["a",   "b"] }')
    profiles.set("mine", {"model": "n"})
    assert path.read_text() == '{ "model" : "n",\n\n     "tags": ["a",   "b"] }'


def test_delete_removes_from_one_scope(profiles: Profiles) -> None:
    profiles.set("fast", {"model": "g"})
    profiles.set("fast", {"model": "p"}, scope="project")
    with pytest.raises(ValidationError, match="exists in both"):
        profiles.delete("fast")
    assert profiles.delete("fast", scope="project").parent.parent.name == "project"
    assert profiles.get("fast").fields == {"model": "g"}
    assert not profiles.delete("fast").exists()
    assert profiles.names() == ()


def test_apply_fills_default_fields_only(profiles: Profiles) -> None:
    profiles.set("fast", {"agent": "p", "model": "p", "timeout": 5, "retry_policy": {"max_attempts": 9, "jitter": 0.0}})
    options = profiles.apply(
        "fast", RunOptions(agent="mine", prompt="x", timeout=7.0, retry_policy=RetryPolicy(jitter=1.0))
    )
    assert (options.agent, options.model, options.timeout, options.prompt) == ("mine", "p", 7.0, "x")
    assert options.retry_policy == RetryPolicy(max_attempts=9, jitter=1.0)
    assert profiles.apply("fast", RunOptions(agent="", prompt="x")).agent == "p"


def test_policy_path_is_relative_to_the_profile(profiles: Profiles) -> None:
    path = profiles.set("careful", {"policy": "rules.toml"})
    with pytest.raises(AgentMuxError, match=f"the policy {path.parent / 'rules.toml'} cannot be used"):
        profiles.apply("careful", RunOptions(agent="a", prompt="x"))
    (path.parent / "rules.toml").write_text('default = "deny"\n')
    policy = profiles.apply("careful", RunOptions(agent="a", prompt="x")).policy
    assert policy is not None
    assert policy.default == "deny"


def test_the_default_profile(profiles: Profiles, places: Mapping[Scope, Path]) -> None:
    profiles.set("mine", {"model": "m"})
    profiles.set("theirs", {"model": "m"}, scope="project")
    path = profiles.make_default("mine")
    assert (path, json.loads(path.read_text())) == (places["project"] / "config.json", {"profile": "mine"})
    assert profiles.make_default("mine", scope="global") == places["global"] / "config.json"
    with pytest.raises(AgentMuxError) as raised:
        profiles.make_default("theirs", scope="global")  # exists in the project only
    assert code_of(raised) == "PROFILE_NOT_FOUND"
    profiles.make_default(None)
    assert json.loads(path.read_text()) == {}


def test_without_project_only_global_profiles_exist(tmp_path: Path) -> None:
    profiles = Profiles(lambda: {"global": tmp_path}, locks=tmp_path / "locks")
    with pytest.raises(AgentMuxError, match="amux init") as raised:
        profiles.set("fast", {"model": "m"}, scope="project")
    assert code_of(raised) == "VALIDATION_ERROR"
    assert profiles.make_default(None, scope="global") == tmp_path / "config.json"
    assert list(tmp_path.iterdir()) == []


def test_client_has_profiles_of_its_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    (tmp_path / "repo" / ".agent-mux").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo")
    mux = AgentMux(config_dir=tmp_path / "mux")
    mux.profiles.set("a", {"model": "m"})
    mux.profiles.set("b", {"model": "m"}, scope="project")
    assert mux.profiles.names() == ("a", "b")
    blocking = BlockingAgentMux(config_dir=tmp_path / "mux")
    assert blocking.profiles.names() == ("a", "b")
    assert blocking.resolve_options(agent="x", prompt="y", profile="b").options.model == "m"
    assert AgentMux(config_dir=tmp_path / "mux", project_config_dir=tmp_path / "p").profiles.names() == ("a",)


def test_concurrent_changes_are_all_kept(places: Mapping[Scope, Path], tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(8)]

    def change(key: str) -> None:
        schema = {f"outputSchema.{key}": {"type": "string"}}
        Profiles(lambda: places, locks=tmp_path / "locks").set_keys("fast", schema)

    with ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(change, keys))
    profile = Profiles(lambda: places, locks=tmp_path / "locks").get("fast")
    assert set(profile.content["outputSchema"]) == set(keys)
