"""What the support matrix says of native protocols: nothing is left out, and options lead where it says."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_mux import RunOptions
from agent_mux.sdk.adapter import TRANSCRIPTS_ONLY, Adapter, NativeProtocol, SpawnEnvironment
from agent_mux.sdk.registry import AdapterRegistry

REGISTRY = AdapterRegistry()
OURS = [name for name in REGISTRY.names() if REGISTRY.get(name).spawn.__module__.startswith("agent_mux_adapters.")]
ADAPTERS = {name: REGISTRY.get(name) for name in OURS if REGISTRY.get(name).protocols}  # a replay has none of its own
PROTOCOLS = [(name, protocol) for name, adapter in ADAPTERS.items() for protocol in adapter.protocols]
OPTIONS: tuple[dict[str, Any], ...] = (
    {"approval_mode": "yolo"},
    {"approval_mode": "yolo", "stream": False},
    {"approval_mode": "prompt"},
    {"approval_mode": "yolo", "interactive": True},
)
SECRETIVE = {"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1/v1", "COPILOT_PROVIDER_HEADERS": "x-key: secret"}
PROFILE = 'name = "mine"\nready = "> $"\n'


def protocol_of(agent: str, name: str) -> NativeProtocol:
    return ADAPTERS[agent].protocols[name]


@pytest.mark.parametrize(("agent", "name"), PROTOCOLS)
def test_each_says_what_it_is_chosen_for_and_what_it_loses(agent: str, name: str) -> None:
    protocol = protocol_of(agent, name)
    assert protocol.loses is not None
    assert len(set(protocol.loses)) == len(protocol.loses)
    for phrase in (protocol.chosen_for, *protocol.loses):
        assert phrase
        assert phrase == phrase.strip(" .;")


@pytest.mark.parametrize("agent", ADAPTERS)
def test_options_lead_to_those_that_are_chosen_for_something_and_to_no_other(agent: str, tmp_path: Path) -> None:
    adapter = ADAPTERS[agent]
    said = {name for name, protocol in adapter.protocols.items() if protocol.chosen_for != TRANSCRIPTS_ONLY}
    assert chosen(adapter, tmp_path) == said


def chosen(adapter: Adapter, directory: Path) -> set[str]:
    """Where options lead, whatever the program is and the environment says."""
    of_python = directory / "of-python"
    of_python.write_text("#!/opt/venv/bin/python3\n")
    programs = [str(of_python), *(str(directory / name) for name in ("anything", *adapter.protocols))]
    environments = ({}, SECRETIVE, *profiles(directory))
    return {
        adapter.spawn(
            RunOptions(agent=adapter.agent, prompt="hi", cwd=directory, **options),
            SpawnEnvironment(executable=program, temp_dir=str(directory), environ=environ),
        ).protocol
        for options, environ, program in product(OPTIONS, environments, programs)
    }


def profiles(directory: Path) -> list[dict[str, str]]:
    """The environments of people who say what a terminal program is like."""
    found = [{"AMUX_TERMINAL_PROFILE": "screen"}]
    for rest in ("short", "long"):
        path = directory / f"{rest}.toml"
        path.write_text(f'{PROFILE}rest = "{rest}"\n')
        found.append({"AMUX_TERMINAL_PROFILE": str(path)})
    return found
