"""Every end-to-end scenario file is valid, and has a recording made from it."""

import json
from pathlib import Path

import pytest

from agent_mux.sdk.versions import version_key
from agent_mux_testing.fixtures import load_fixture
from agent_mux_testing.model_server import parse_script

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted((ROOT / "tests/e2e/scenarios").glob("*/*.json"))
KEYS = {"arguments", "script", "note", "environment", "files", "cwd", "continues", "stdin", "keep_stdin_open"}


def test_there_are_scenarios() -> None:
    assert SCENARIOS


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_scenario_is_valid_and_recorded(path: Path) -> None:
    scenario = json.loads(path.read_bytes())
    assert set(scenario) <= KEYS | {"conversation", "timeout"}
    parse_script(scenario["script"])
    if "continues" in scenario:
        assert path.with_stem(scenario["continues"]).exists()
    recorded = (ROOT / "fixtures" / path.parent.name).glob(f"*/{path.stem}")
    fixture = load_fixture(max(recorded, key=lambda folder: version_key(folder.parent.name)))
    assert fixture.script == scenario["script"]
    expected = [argument for argument in scenario["arguments"] if isinstance(argument, str)]
    assert [argument for argument in fixture.command[1:] if argument in expected] == expected
