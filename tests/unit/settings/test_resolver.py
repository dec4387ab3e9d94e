"""The options that a client resolves from all sources."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_mux import AgentMux, RetryPolicy, RunOptions
from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.settings.options_json import fields_to_json
from agent_mux.settings.resolver import ResolvedOptions


class House:
    """A global directory and a project, with clients that use them."""

    def __init__(self, directory: Path) -> None:
        self.config, self.project = directory / "mux", directory / "repo" / ".agent-mux"
        self.repo = self.project.parent
        self.project.mkdir(parents=True)

    def write(self, place: Path, content: Mapping[str, Any], name: str = "config") -> Path:
        path = place / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def client(self, **arguments: Any) -> AgentMux:
        return AgentMux(config_dir=self.config, project_config_dir=self.project, **arguments)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    return House(tmp_path)


# -- all sources

SOURCES = ("call", "profile", "client", "project", "global")
CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["a", "b", "c"]),
    "timeout": st.sampled_from([0.0, 1.0, 2.5]),
    "approval_mode": st.sampled_from(["prompt", "yolo", "deny"]),
    "stream": st.sampled_from(["auto", True, False]),
    "event_buffer_size": st.sampled_from([1000, 5]),
    "debug": st.booleans(),
    "journal": st.booleans(),
}
"""Values that every source can set; defaults of `RunOptions` are among them."""
policies = st.fixed_dictionaries(
    {}, optional={"max_attempts": st.integers(1, 3), "base_delay": st.sampled_from([1.0, 2.0]), "jitter": st.just(0.5)}
)
option_sets = st.fixed_dictionaries(
    {source: st.fixed_dictionaries({}, optional={**CHOICES, "retry_policy": policies}) for source in SOURCES}
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(option_sets)
def test_strongest_source_wins(house: House, options_by_source: dict[str, dict[str, Any]]) -> None:
    for source, place in (("project", house.project), ("global", house.config)):
        content = fields_to_json(options_by_source[source])
        house.write(place, {{"model": "defaultModel"}.get(key, key): value for key, value in content.items()})
    house.write(house.config, fields_to_json(options_by_source["profile"]), "profiles/p")
    client = dict(options_by_source["client"])
    if "retry_policy" in client:
        client["retry_policy"] = RetryPolicy(**client["retry_policy"])
        options_by_source["client"]["retry_policy"] = {  # a complete policy sets its non-default fields only
            name: value
            for name, value in options_by_source["client"]["retry_policy"].items()
            if value != getattr(RetryPolicy(), name)
        }
    if "model" in client:
        client["default_model"] = client.pop("model")
    options = (
        house.client(**client).resolve_options(agent="x", prompt="y", profile="p", **options_by_source["call"]).options
    )
    for name in CHOICES:
        values = [options_by_source[source][name] for source in SOURCES if name in options_by_source[source]]
        assert getattr(options, name) == (values[0] if values else getattr(RunOptions(agent="x"), name))
    policy = [
        options_by_source[source]["retry_policy"] for source in SOURCES if "retry_policy" in options_by_source[source]
    ]
    expected = {name: value for one in reversed(policy) for name, value in one.items()}
    assert options.retry_policy == (RetryPolicy(**expected) if policy else None)


def test_each_field_has_its_source(house: House) -> None:
    globally = house.write(house.config, {"defaultAgent": "g", "defaultModel": "g", "tags": ["g"], "debug": True})
    project = house.write(house.project, {"defaultModel": "p", "tags": ["p"]})
    profile = house.write(house.config, {"maxModelCalls": 3}, "profiles/fast")
    house.write(house.config, {"defaultAgent": "claude", "debug": True})
    resolved = house.client(stream=False).resolve_options(prompt="x", profile="fast", timeout=0)
    assert resolved.sources == {
        "prompt": "the call", "profile": "the call", "timeout": "the call", "max_model_calls": str(profile),
        "stream": "the client", "model": str(project), "tags": str(project), "agent": str(globally),
        "debug": str(globally),
    }  # fmt: skip
    assert resolved.options == RunOptions(
        agent="claude", prompt="x", profile="fast", max_model_calls=3, stream=False, model="p", tags=["p"], debug=True
    )


# -- the call


def test_default_value_in_the_call_overrides_weaker_sources(house: House) -> None:
    house.write(house.config, {"timeout": 9000, "approvalMode": "yolo", "retryPolicy": {"maxAttempts": 9}})
    resolved = house.client().resolve_options(
        agent="a", prompt="x", timeout=0, approval_mode="prompt", retry_policy={"max_attempts": 3}
    )
    assert (resolved.options.timeout, resolved.options.approval_mode) == (0, "prompt")
    assert resolved.options.retry_policy == RetryPolicy(max_attempts=3)


def test_none_means_unset(house: House) -> None:
    house.write(house.config, {"timeout": 9000, "defaultModel": "m"})
    options = house.client().resolve_options(agent="a", prompt="x", timeout=None, model=None).options
    assert (options.timeout, options.model) == (9.0, "m")


def test_complete_options_set_only_non_default_fields(house: House) -> None:
    house.write(house.config, {"timeout": 9000, "defaultModel": "m"})
    options = house.client().resolve_options(RunOptions(agent="a", prompt="x", model="mine", timeout=0.0)).options
    assert (options.timeout, options.model) == (9.0, "mine")


def test_environments_are_merged(house: House) -> None:
    options = house.client().resolve_options(agent="a", prompt="x", env={"A": "b"}).options
    assert options.env == {"A": "b"}


@pytest.mark.parametrize(
    "fields",
    [
        {"modell": "x"},
        {"retry_policy": "often"},
        {"retry_policy": {"attempts": 1}},
        {"env": "A=b"},
        {"profile": 5},
    ],
)
def test_unknown_fields_of_a_call_are_rejected(house: House, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        house.client().resolve_options(agent="a", prompt="x", **fields)


def test_options_or_fields_but_not_both(house: House) -> None:
    with pytest.raises(TypeError):
        house.client().resolve_options(RunOptions(agent="a"), model="x")


# -- agents


def test_agent_settings_override_general_settings(house: House) -> None:
    house.write(house.config, {"defaultModel": "all", "maxModelCalls": 1, "agents": {"claude-code": {"model": "own"}}})
    assert house.client().resolve_options(agent="claude", prompt="x").options.model == "own"
    assert house.client().resolve_options(agent="claude-code", prompt="x").options.model == "own"
    assert house.client().resolve_options(agent="codex", prompt="x").options.model == "all"
    house.write(house.project, {"defaultModel": "project"})
    assert house.client().resolve_options(agent="claude", prompt="x").options.model == "project"
    assert house.client(default_model="client").resolve_options(agent="claude", prompt="x").options.model == "client"


def test_settings_of_misspelled_agent_give_a_warning(house: House) -> None:
    path = house.write(house.config, {"agents": {"cluade": {"model": "m"}, "claude-code": {}, "nobody-knows": {}}})
    resolved = house.client().resolve_options(agent="codex", prompt="x")
    assert resolved.warnings == (f"{path} has settings of 'cluade'; did you mean 'claude'?",)


def test_agent_name_takes_precedence_over_aliases(house: House) -> None:
    house.write(house.config, {"agents": {"claude-code": {"model": "alias"}, "claude": {"model": "name"}}})
    assert house.client().resolve_options(agent="claude-code", prompt="x").options.model == "name"


def test_agent_comes_from_the_strongest_source(house: House) -> None:
    house.write(house.config, {"defaultAgent": "claude"})
    house.write(house.config, {"agent": "pi"}, "profiles/p")
    assert house.client().resolve_options(prompt="x").options.agent == "claude"
    house.write(house.project, {"defaultAgent": "codex"})
    assert house.client().resolve_options(prompt="x").options.agent == "codex"
    assert house.client(default_agent="omp").resolve_options(prompt="x").options.agent == "omp"
    assert house.client(default_agent="omp").resolve_options(prompt="x", profile="p").options.agent == "pi"
    assert house.client().resolve_options(prompt="x", profile="p", agent="gemini").options.agent == "gemini"


def test_unknown_agent_in_a_file_is_reported_with_the_file(house: House) -> None:
    path = house.write(house.config, {"defaultAgent": "cluade"})
    with pytest.raises(AgentMuxError, match="did you mean 'claude'") as raised:
        house.client().resolve_options(prompt="x")
    assert raised.value.code == "AGENT_NOT_FOUND"
    assert str(path) in str(raised.value)
    assert (
        house.client().resolve_options(prompt="x", agent="nobody").options.agent == "nobody"
    )  # reported when the run starts


# -- profiles


def test_config_can_name_the_profile(house: House) -> None:
    house.write(house.config, {"profile": "g"})
    house.write(house.config, {"model": "g"}, "profiles/g")
    house.write(house.config, {"model": "p"}, "profiles/p")
    client = house.client()
    assert client.resolve_options(agent="a", prompt="x").options.model == "g"
    house.write(house.project, {"profile": "p"})
    resolved = client.resolve_options(agent="a", prompt="x")
    assert (resolved.options.model, resolved.sources["profile"]) == ("p", str(house.project / "config.json"))
    assert client.resolve_options(agent="a", prompt="x", profile="g").options.profile == "g"
    none = client.resolve_options(agent="a", prompt="x", profile="").options
    assert (none.model, none.profile) == (None, None)


def test_unknown_profile_is_reported(house: House) -> None:
    house.write(house.config, {"model": "m"}, "profiles/review")
    with pytest.raises(AgentMuxError, match="did you mean 'review'") as raised:
        house.client().resolve_options(agent="a", prompt="x", profile="reviwe")
    assert raised.value.code == "PROFILE_NOT_FOUND"
    path = house.write(house.project, {"profile": "gone"})
    with pytest.raises(AgentMuxError, match=f"the profile is named in {path}"):
        house.client().resolve_options(agent="a", prompt="x")
    with pytest.raises(ValidationError):
        house.client().resolve_options(agent="a", prompt="x", profile="../x")


# -- files


def test_project_is_found_from_the_working_directory(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(house.project, {"defaultModel": "p"})
    monkeypatch.chdir(house.repo.parent)
    client = AgentMux(config_dir=house.config)
    assert client.resolve_options(agent="a", prompt="x").project is None
    resolved = client.resolve_options(agent="a", prompt="x", cwd=house.repo)
    assert (resolved.project, resolved.options.model) == (house.project, "p")
    monkeypatch.chdir(house.repo)
    assert client.resolve_options(agent="a", prompt="x").options.model == "p"
    monkeypatch.setenv("AGENT_MUX_PROJECT_DIR", str(house.repo.parent / "other"))
    assert client.resolve_options(agent="a", prompt="x").options.model is None


def test_client_creates_and_reads_nothing_before_a_run(house: House) -> None:
    house.config.mkdir()
    (house.config / "config.json").write_text("{")
    client = house.client()
    with pytest.raises(AgentMuxError, match=r"config\.json is not JSON: line 1, column 2"):
        client.resolve_options(agent="a", prompt="x")
    (house.config / "config.json").unlink()
    client.resolve_options(agent="a", prompt="x")
    assert (list(house.config.iterdir()), list(house.project.iterdir())) == ([], [])


def test_changed_file_is_read_again(house: House) -> None:
    client = house.client()
    assert client.resolve_options(agent="a", prompt="x").options.model is None
    house.write(house.config, {"defaultModel": "one"})
    assert client.resolve_options(agent="a", prompt="x").options.model == "one"
    house.write(house.config, {"defaultModel": "other"})
    assert client.resolve_options(agent="a", prompt="x").options.model == "other"


def test_policy_path_is_relative_to_the_config(house: House) -> None:
    house.write(house.project, {"policy": "rules.toml"})
    with pytest.raises(AgentMuxError, match=str(house.project / "rules.toml")):
        house.client().resolve_options(agent="a", prompt="x")
    (house.project / "rules.toml").write_text('default = "deny"\n')
    policy = house.client().resolve_options(agent="a", prompt="x").options.policy
    assert policy is not None
    assert policy.default == "deny"


# -- warnings


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"approvalMode": "yolo"}, "approval_mode"),
        ({"mcpServers": [{"name": "x", "command": "y"}]}, "mcp_servers"),
        ({"command": ["x"]}, "command"),
        ({"agents": {"claude": {"approvalMode": "yolo"}}}, "approval_mode"),
    ],
)
def test_sensitive_project_settings_give_a_warning(house: House, content: dict[str, Any], field: str) -> None:
    house.write(house.config, content)
    assert house.client().resolve_options(agent="claude", prompt="x").warnings == ()
    path = house.write(house.project, content)
    [warning] = house.client().resolve_options(agent="claude", prompt="x").warnings
    assert warning.startswith(f"{field} is set by {path}")


def test_harmless_project_settings_give_no_warning(house: House) -> None:
    house.write(house.project, {"approvalMode": "deny", "defaultModel": "m", "tags": ["x"]})
    assert house.client().resolve_options(agent="claude", prompt="x").warnings == ()
    house.write(house.project, {"approvalMode": "yolo"})
    assert house.client().resolve_options(agent="claude", prompt="x", approval_mode="yolo").warnings == ()


def test_run_index_is_the_projects_and_can_be_disabled(house: House) -> None:
    def index_of(**fields: Any) -> Path | None:
        return house.client().resolve_options(agent="a", prompt="x", **fields).index

    assert index_of() == house.project / "run-index.jsonl"
    assert index_of(journal=False) is None
    house.write(house.config, {"runIndex": False})
    assert index_of() is None
    house.write(house.project, {"runIndex": True})
    assert index_of() == house.project / "run-index.jsonl"
    nowhere = AgentMux(config_dir=house.project, project_config_dir=house.repo / "nowhere")
    assert nowhere.resolve_options(agent="a", prompt="x").index == house.project / "run-index.jsonl"
    assert not (house.repo / "nowhere").exists()


@pytest.mark.parametrize("fields", [{"timeout": "5"}, {"isolation": "vm"}])
def test_values_of_a_wrong_type_and_unknown_words_are_refused(house: House, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        AgentMux(config_dir=house.config).resolve_options(agent="a", prompt="x", **fields)


@pytest.mark.parametrize("fields", [{"cwd": "a\0b"}, {"timeout": -5}, {"cwd": "/not/there"}])
def test_invalid_values_of_a_possible_type_are_left_to_validation(house: House, fields: dict[str, Any]) -> None:
    values = {"agent": "a", "prompt": "x", **fields}
    options = AgentMux(config_dir=house.config).resolve_options(**values).options
    for name, value in fields.items():
        assert getattr(options, name) == value


def test_resolved_options_can_be_changed_and_run(house: House) -> None:
    house.write(house.config, {"timeout": 9000})
    client = house.client()
    resolved = client.resolve_options(agent="a", prompt="x", timeout=0)
    changed = replace(resolved, options=replace(resolved.options, prompt="y"))
    assert isinstance(changed, ResolvedOptions)
    assert client._resolve(changed, {}) is changed


def test_old_name_of_an_option_is_resolved_to_the_new_one(house: House) -> None:
    house.write(house.config, {"maxTurns": 4})
    assert house.client().resolve_options(agent="a", prompt="x").options.max_model_calls == 4
    assert house.client().resolve_options(agent="a", prompt="x", max_turns=3).options.max_model_calls == 3
    with pytest.raises(ValidationError, match="only one of max_model_calls"):
        house.client().resolve_options(agent="a", prompt="x", max_turns=3, max_model_calls=4)


def test_environment_names_the_default_agent(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(house.project, {"defaultAgent": "gemini", "agents": {"codex": {"model": "c"}}})
    monkeypatch.setenv("AGENT_MUX_DEFAULT_AGENT", "codex")
    resolved = house.client().resolve_options(prompt="hi")
    assert (resolved.options.agent, resolved.options.model) == ("codex", "c")
    assert resolved.sources["agent"] == "$AGENT_MUX_DEFAULT_AGENT"
    assert house.client(default_agent="pi").resolve_options(prompt="hi").options.agent == "pi"
    assert house.client().resolve_options(agent="claude", prompt="hi").options.agent == "claude"


def test_unknown_agent_in_the_environment_is_reported_with_the_variable(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_MUX_DEFAULT_AGENT", "cluade")
    with pytest.raises(AgentMuxError, match=r"did you mean 'claude'.*AGENT_MUX_DEFAULT_AGENT"):
        house.client().resolve_options(prompt="hi")


def test_empty_variable_names_no_agent(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_DEFAULT_AGENT", " ")
    assert house.client().resolve_options(prompt="hi").options.agent == ""


def test_environment_sets_the_grace_period_in_milliseconds(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_GRACE_PERIOD_MS", "1500")
    resolved = house.client().resolve_options(agent="claude", prompt="hi")
    assert (resolved.options.grace_period, resolved.sources["grace_period"]) == (1.5, "$AGENT_MUX_GRACE_PERIOD_MS")
    assert house.client().resolve_options(agent="claude", prompt="hi", grace_period=2).options.grace_period == 2
    monkeypatch.setenv("AGENT_MUX_GRACE_PERIOD_MS", "5s")
    with pytest.raises(ValidationError, match=r"AGENT_MUX_GRACE_PERIOD_MS: got '5s'; allowed: a whole number"):
        house.client().resolve_options(agent="claude", prompt="hi")
