"""Tools for commands of `amux`, which finds them by the entry-point group `agent_mux.testing`.

Their interface is `agent_mux.cli.testing_tools`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.errors import AgentMuxError

if TYPE_CHECKING:
    from agent_mux.journal.records import Header, Record
    from agent_mux.run.derivation import CodecFactory
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux_testing.drift import DriftReport, Installation


def open_fixture(folder: Path, adapters: "AdapterRegistry") -> "tuple[Header, CodecFactory, Iterable[Record]]":
    """Return the header, the codec and the records of a fixture. Raise VALIDATION_ERROR for other folders."""
    from agent_mux_testing.conformance.recorded import Recorded
    from agent_mux_testing.fixtures import load_fixture

    try:
        agent = load_fixture(folder).agent
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{folder} is not a fixture folder: {_reason(error)}"
        raise AgentMuxError("VALIDATION_ERROR", message) from error
    recorded = Recorded(adapters.get(agent), folder)
    return recorded.header(), recorded.protocol.codec, recorded.records


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{Path(str(error.filename)).name} is missing"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def check_drift(agents: Sequence[str]) -> "Iterator[DriftReport]":
    """Compare installed agents with their baselines, offline, by default all that have one.

    The network is disabled for this process. Raise AGENT_NOT_INSTALLED, or SPAWN_ERROR if the network stays on.
    """
    import anyio

    from agent_mux_testing import drift, offline

    installations = _find_installations(agents)
    try:
        offline.enter_offline()
    except OSError as error:
        why = (
            f"drift detection runs offline, and the network cannot be disabled here ({error}); run it as root on Linux"
        )
        raise AgentMuxError("SPAWN_ERROR", why) from error
    for agent, installation in installations.items():
        yield anyio.run(drift.find_drift, agent, installation)


def _find_installations(agents: Sequence[str]) -> "dict[str, Installation]":
    """Find the programs to check. This happens before the network is disabled."""
    from agent_mux.process.executable import find_executable
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux_testing.drift import Installation
    from agent_mux_testing.live.kits import kit_of, kits

    registry = AdapterRegistry()
    found = {}
    for agent in [registry.get(name).agent for name in agents] or list(kits()):
        if kit_of(agent).baseline is None:
            continue
        try:
            program = find_executable(registry.get(agent), os.environ)
        except AgentMuxError:
            if agents:
                raise
            continue
        found[agent] = Installation(program=program, path=os.environ.get("PATH", os.defpath))
    if not found:
        raise AgentMuxError("AGENT_NOT_INSTALLED", "no agent with a drift baseline is installed")
    return found


if TYPE_CHECKING:  # mypy compares the entry points with the types that the commands expect
    from agent_mux.cli.testing_tools import DriftCheck, OpenFixture, RunTorture, SaveRun
    from agent_mux_testing.recorder import save_run
    from agent_mux_testing.torture import run_torture

    _TOOLS: tuple[DriftCheck, OpenFixture, SaveRun, RunTorture] = (check_drift, open_fixture, save_run, run_torture)
