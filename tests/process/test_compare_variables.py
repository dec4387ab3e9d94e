"""The variables of candidates: also when a comparison is resumed, and for the choice of the configuration directory."""

import json
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest
from tests.process.compared_agents import SAY, TIMEOUT, make_repository, the_trial
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux
from agent_mux.compare.ledger import LEDGER
from agent_mux.compare.records import Comparison
from agent_mux.errors import ValidationError
from agent_mux.sdk.config import AgentConfig
from agent_mux.sdk.installation import AgentInstallation, ConfigDirectory
from agent_mux.sdk.policy import Policy, Rule
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = pytest.mark.anyio
PRINTS = f"read(); emit(text='KEY=%s ALL=%s ' % tuple(map(os.environ.get, ('KEY', 'ALL')))); {SAY}"
PRINTS_SETTINGS = f"read(); emit(text=open(os.environ['AGENT_HOME'] + '/settings.json').read()); {SAY}"
CONFIG = ConfigDirectory(
    variable="AGENT_HOME", path=lambda place: place.home_of("AGENT_HOME", ".agent"), settings=("settings.json",)
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


def client(config: Path) -> AgentMux:
    registry = AdapterRegistry()
    for name in ("one", "two"):
        registry.register(scripted_adapter(PRINTS, agent=name))
    installation = AgentInstallation(config_directory=CONFIG)
    adapter = scripted_adapter(PRINTS_SETTINGS, agent="with-settings")
    registry.register(replace(adapter, installation=lambda: installation))
    shares = AgentInstallation(config=AgentConfig(files=()))
    registry.register(replace(scripted_adapter(PRINTS, agent="shares"), installation=lambda: shares))
    return AgentMux(adapters=registry, config_dir=config, control_sockets=False)


async def compare(config: Path, repository: Path, *candidates: str, **options: object) -> Comparison:
    options = {"timeout": 60.0, **options}
    with anyio.fail_after(TIMEOUT):
        async with client(config) as mux:
            run = await mux.compare("say it", candidates=candidates, cwd=repository, options=options)
            return await run.result()


async def resume(config: Path, options: dict[str, object] | None = None, /, **env: str) -> Comparison:
    with anyio.fail_after(TIMEOUT):
        async with client(config) as mux:
            return await (await mux.resume_comparison(env=env, options=options)).result()


def forget_trials(config: Path) -> None:
    """Leave the comparison as a process that was killed at once."""
    (ledger,) = (config / "comparisons").glob(f"*/{LEDGER}")
    ledger.write_bytes(ledger.read_bytes().split(b"\n")[0] + b"\n")


def texts(comparison: Comparison) -> dict[str, str]:
    return {trial.candidate: trial.last.text for trial in comparison.trials if trial.last is not None}


@pytest.mark.slow
async def test_candidates_keep_their_own_variables_when_resumed(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    before = await compare(config, repository, "one", "two", env={"ALL": "all", "one:KEY": "k1", "two:KEY": "k2"})
    expected = {"one": "KEY=k1 ALL=all done", "two": "KEY=k2 ALL=all done"}
    assert texts(before) == expected
    forget_trials(config)
    assert texts(await resume(config, **{"ALL": "all", "one:KEY": "k1", "two:KEY": "k2"})) == expected
    (plan,) = config.glob("comparisons/*/plan.json")
    assert not {"k1", "k2"} & set(plan.read_text().split('"'))


@pytest.mark.slow
async def test_value_without_a_candidate_is_for_those_that_had_the_variable(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    await compare(config, repository, 'one,env={"KEY":"k1"}', "two")
    forget_trials(config)
    assert texts(await resume(config, KEY="k1")) == {"one": "KEY=k1 ALL=None done", "two": "KEY=None ALL=None done"}


@pytest.mark.slow
async def test_missing_values_are_named_with_their_candidate(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    await compare(config, repository, 'one,env={"KEY":"k1"}', "two", env={"ALL": "all"})
    forget_trials(config)
    with pytest.raises(ValidationError, match=r"values for ALL, one:KEY, which are not stored"):
        await resume(config, **{"two:KEY": "x"})
    with pytest.raises(ValidationError, match=r"CANDIDATE:NAME with one of: one, two"):
        await resume(config, **{"ALL": "all", "KEY": "k", "three:KEY": "x"})


async def test_resumed_comparison_needs_the_options_again_that_its_plan_does_not_store(
    tmp_path: Path, repository: Path
) -> None:
    config = tmp_path / "config"
    rules = Policy(rules=(Rule(decision="allow", tools=("Read",)),))
    await compare(config, repository, "one", policy=rules, on_approval_request=lambda _: True)
    (plan,) = config.glob("comparisons/*/plan.json")
    options = msgspec.json.decode(plan.read_bytes())["options"]
    assert options["options"]["policy"] == json.loads(msgspec.json.encode(rules))
    assert options["notStored"] == ["on_approval_request"]
    forget_trials(config)
    with pytest.raises(ValidationError, match="on_approval_request, which the plan does not store: --set"):
        await resume(config)
    again = await resume(config, {"on_approval_request": lambda _: True})
    assert the_trial(again, "one").outcome is not None


@pytest.mark.parametrize("inherit_env", [True, False])
async def test_configuration_directory_is_the_one_that_the_agent_would_use(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, inherit_env: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "elsewhere"))
    for place, content in ((tmp_path / "home" / ".agent", "of home"), (tmp_path / "elsewhere", "of variable")):
        place.mkdir(parents=True)
        (place / "settings.json").write_text(content)
    comparison = await compare(tmp_path / "config", repository, "with-settings", inherit_env=inherit_env)
    trial = the_trial(comparison, "with-settings")
    assert trial.last is not None
    assert trial.last.text == ("of variabledone" if inherit_env else "of homedone")


@pytest.mark.slow
async def test_shared_configuration_directory_is_reported_once(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    note = "all trials use the user's configuration directory: no variable moves it for shares"
    comparison = await compare(config, repository, "shares,trials=2", "one")
    assert comparison.notes.count(note) == 1
    assert (await resume(config)).notes.count(note) == 1
