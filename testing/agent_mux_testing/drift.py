"""Comparison of an installed CLI with our recordings: `amux doctor --drift`.

The CLI is driven through a few scenarios, offline, against the scripted model. Its output is compared with the baseline
of its adapter: the kinds of messages and their fields, and the flags that its help lists. Baselines are written by
`python -m agent_mux_testing.drift AGENT`, with the CLI at its pinned version.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.journal.file import JournalReader
from agent_mux.journal.records import Kind
from agent_mux.run.plan import plan_run
from agent_mux.run.result import RunResult
from agent_mux.sdk.framing import new_framer
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.live.kit import KitContext, LiveKit, UnsupportedPart
from agent_mux_testing.live.kits import kit_of, launch
from agent_mux_testing.live.scenarios import Scenario, scenarios_for
from agent_mux_testing.live.shapes import Shapes, shapes_of, without
from agent_mux_testing.model_server import Script, ScriptedModelServer
from agent_mux_testing.provision import find_agent

__all__ = ["Baseline", "DriftReport", "Installation", "find_drift", "observe", "write_baseline"]

SCENARIO_TIMEOUT = 120.0  # seconds; more for an agent that starts slowly
HELP_TIMEOUT = 60.0
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An installed CLI that is compared with its baseline."""

    program: str
    path: str
    """The PATH in its environment."""


@dataclass(slots=True)
class Baseline:
    """The flags that a CLI lists, and the shapes of its messages."""

    flags: set[str] = field(default_factory=set)
    shapes: dict[str, Shapes] = field(default_factory=dict)
    """The shapes by native protocol."""

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Read a baseline from its file. Raise CONFIG_ERROR when the file is missing."""
        try:
            plain = json.loads(path.read_bytes())
        except OSError as error:
            raise AgentMuxError("CONFIG_ERROR", f"no baseline to compare with: {path}: {error.strerror}") from error
        shapes = {
            protocol: {kind: set(paths) for kind, paths in kinds.items()} for protocol, kinds in plain["shapes"].items()
        }
        return cls(set(plain["flags"]), shapes)

    def write(self, path: Path) -> None:
        """Write the baseline, sorted, so that a diff shows only what has changed."""
        shapes = {
            protocol: {kind: sorted(paths) for kind, paths in sorted(kinds.items())}
            for protocol, kinds in sorted(self.shapes.items())
        }
        path.write_text(json.dumps({"flags": sorted(self.flags), "shapes": shapes}, indent=0) + "\n", "utf-8")

    def add(self, protocol: str, shapes: Shapes) -> None:
        """Add the shapes of more messages."""
        known = self.shapes.setdefault(protocol, {})
        for kind, paths in shapes.items():
            known.setdefault(kind, set()).update(paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """How a CLI differs from its baseline."""

    agent: str
    scenarios: tuple[str, ...]
    findings: tuple[str, ...]
    """One sentence each; empty when nothing differs."""


@dataclass(slots=True)
class Observation:
    """The output of a CLI in the scenarios."""

    printed: Baseline = field(default_factory=Baseline)
    ran: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_success: bool = False
    """Whether at least one scenario had no problems."""

    def add_journal(self, journal: Path, unstable: str | None) -> None:
        """Add the output in the journal of a scenario, without the parts that match `unstable`."""
        reader = JournalReader(journal)
        framer = new_framer(reader.header.framing)
        lines = [line for r in reader.read() if r.kind is Kind.STDOUT for line in framer.feed(r.payload)]
        shapes = shapes_of([*lines, *framer.finish()])
        if unstable is not None:
            shapes = without(shapes, re.compile(unstable))
        self.printed.add(reader.header.codec.protocol, shapes)


async def find_drift(agent: str, installation: Installation) -> DriftReport:
    """Drive the CLI and compare its output with the baseline. Raise CONFIG_ERROR when the agent has no baseline."""
    kit = kit_of(agent)
    if kit.baseline is None:
        raise AgentMuxError("CONFIG_ERROR", f"{agent} has no baseline to compare with")
    baseline = Baseline.read(kit.baseline)
    observation = await observe(kit, installation)
    # A CLI that fails in all scenarios would lack everything in the baseline.
    differences = _differences(baseline, observation.printed) if observation.has_success else ()
    return DriftReport(agent=agent, scenarios=tuple(observation.ran), findings=(*observation.problems, *differences))


async def observe(kit: LiveKit, installation: Installation) -> Observation:
    """Drive the CLI through all scenarios that its kit supports."""
    observation = Observation()
    try:
        observation.printed.flags = _flags(kit, installation)
    except (OSError, subprocess.TimeoutExpired) as error:
        observation.problems.append(f"its flags could not be read: {error}")
    for scenario in scenarios_for(kit):
        known = observation.printed.shapes.keys() if scenario.is_extra else ()
        with tempfile.TemporaryDirectory(prefix="agent-mux-drift-") as directory:
            try:
                result = await _play(kit, scenario, installation, Path(directory), known)
            except UnsupportedPart:
                continue
            if result is None:
                continue
            observation.ran.append(scenario.name)
            problems = list(_problems(scenario, result))
            observation.problems += problems
            observation.has_success |= not problems
            if result.journal is not None:
                observation.add_journal(Path(result.journal), kit.unstable)
    return observation


async def _play(
    kit: LiveKit, scenario: Scenario, installation: Installation, directory: Path, known: Collection[str]
) -> RunResult | None:
    """Play a scenario. Return None when the agent would use a protocol in `known`."""
    workspace = directory / "workspace"
    workspace.mkdir()
    async with ScriptedModelServer(Script(steps=scenario.model(kit, workspace))) as server:
        context = KitContext(url=server.url, home=directory / "home", path=installation.path)
        start = launch(kit, context, installation.program)
        options = RunOptions(
            agent=kit.agent, command=start.command, prompt="do the thing", cwd=workspace, env=start.environment,
            inherit_env=False, timeout=max(SCENARIO_TIMEOUT, kit.patience), collect_events=True,
            **{"approval_mode": "yolo", **scenario.options},
        )  # fmt: skip
        if known and plan_run(options, AdapterRegistry().get, None).spawn.protocol in known:
            return None
        async with AgentMux(config_dir=directory / "mux", project_config_dir=directory / "mux") as mux:
            return await mux.run(options)


def _problems(scenario: Scenario, result: RunResult) -> Iterable[str]:
    for kind, count in result.ledger.unknown.items():
        yield f"{scenario.name}: {count} line(s) of the unknown kind {kind!r}"
    expected = "failed" if scenario.name == "unauthorized" else "completed"
    if result.exit_reason != expected:
        message = f": {result.error.message}" if result.error is not None else ""
        yield f"{scenario.name}: the run ended as {result.exit_reason}, not {expected}{message}"


def _differences(known: Baseline, printed: Baseline) -> Iterable[str]:
    yield from (f"new flag {flag}" for flag in sorted(printed.flags - known.flags))
    yield from (f"the flag {flag} is gone" for flag in sorted(known.flags - printed.flags))
    yield from (f"{protocol} is no longer used" for protocol in sorted(known.shapes.keys() - printed.shapes))
    for protocol, kinds in printed.shapes.items():
        before = known.shapes.get(protocol, {})
        for kind, paths in kinds.items():
            if kind not in before:
                yield f"{protocol}: new kind of message {kind!r}"
            else:
                yield from (f"{protocol}: {kind!r} has a new field {path}" for path in sorted(paths - before[kind]))
        yield from (f"{protocol}: no message of the kind {kind!r} any more" for kind in sorted(before.keys() - kinds))
        yield from (
            f"{protocol}: {kind!r} has no field {path} any more"
            for kind in sorted(before.keys() & kinds) for path in sorted(before[kind] - kinds[kind])
        )  # fmt: skip


def _flags(kit: LiveKit, installation: Installation) -> set[str]:
    with tempfile.TemporaryDirectory(prefix="agent-mux-drift-") as home:
        environment = KitContext(url="", home=Path(home), path=installation.path).minimal()
        texts = [_help([installation.program, *arguments], environment) for arguments in kit.help]
    return {flag for text in texts for flag in _FLAG.findall(text)}


def _help(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=HELP_TIMEOUT, check=False
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


async def write_baseline(agent: str) -> int:
    """Write the baseline of an agent from its provisioned CLI. Return the number of kinds of messages in it."""
    kit = kit_of(agent)
    found = find_agent(agent)
    if found is None or kit.baseline is None:
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{agent} is not provisioned, or its kit names no baseline")
    installation = Installation(program=str(found.program), path=found.path)
    observation = await observe(kit, installation)
    if observation.problems:
        raise AgentMuxError("AGENT_CRASH", "; ".join(observation.problems))
    observation.printed.write(kit.baseline)
    return sum(map(len, observation.printed.shapes.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the baselines of the agents on the command line. Return the exit code."""
    parser = argparse.ArgumentParser(prog="agent_mux_testing.drift", description=__doc__)
    parser.add_argument("agents", nargs="+", metavar="AGENT")
    for agent in parser.parse_args(arguments).agents:
        try:
            count: Any = anyio.run(write_baseline, agent)
        except AgentMuxError as error:
            sys.stderr.write(f"error: {agent}: {error}\n")
            return 1
        sys.stdout.write(f"{agent}: {count} kinds of messages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
