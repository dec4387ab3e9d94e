"""Commands whose tools come with the distribution `agent-mux-testing`, without it."""

import tomllib
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Amux

import agent_mux
from agent_mux.cli import testing_tools

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["doctor", "--drift"], "`amux doctor --drift`"),
        (["doctor", "--torture"], "`amux doctor --torture`"),
        (["record", "claude", "hello", "--to", "new"], "`amux record`"),
        (["replay", "."], "`amux replay` of a fixture folder"),
    ],
)
def test_a_missing_test_kit_is_a_usage_error_with_the_pip_command(
    amux: Amux, monkeypatch: pytest.MonkeyPatch, arguments: list[str], command: str
) -> None:
    monkeypatch.setattr(testing_tools, "entry_points", lambda **_: ())
    done = amux(*arguments)
    assert (done.code, done.out) == (2, "")
    assert f"{command} requires the extra: pip install 'agent-mux[testing]'" in done.err


def test_both_distributions_have_one_version() -> None:
    main = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kit = tomllib.loads((ROOT / "testing" / "pyproject.toml").read_text())["project"]
    assert kit["version"] == agent_mux.__version__
    assert f"agent-mux=={kit['version']}" in kit["dependencies"]
    assert main["optional-dependencies"]["testing"] == [f"agent-mux-testing=={kit['version']}"]
