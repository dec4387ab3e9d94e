"""What each agent shows and can do, from the recordings and the last run of the real CLIs.

Nothing here is typed in: events come from the golden events of the fixtures, scenarios from `tests/e2e/results.json`,
which `make e2e-results` writes, and transports with their losses from the adapters.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from docs.pages.homes import homes_section

from agent_mux.adapter import Adapter
from agent_mux.events import CATEGORIES
from agent_mux.registry import AdapterRegistry
from agent_mux.testing.conformance.checks import GOLDEN
from agent_mux.testing.fixtures import find_fixtures, load_fixture
from agent_mux.testing.live import Pin, kits

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
RESULTS = ROOT / "tests" / "e2e" / "results.json"
OF_ANY_AGENT = ("aborted", "paused", "resumed", "timeout")
"""Events that the mux itself makes, whichever agent runs."""
NOT_AGENTS = frozenset({"replay"})
INTRODUCTION = """# Support matrix

<!-- Written by docs/generate.py from fixtures/, tests/e2e/results.json and the adapters. Do not edit. -->

Everything on this page was seen: in a recording of the real CLI (below `fixtures/`), or in the last run of the real
CLIs against the scripted model (`make e2e`). Agents whose CLI cannot be installed from a registry are marked as
documented: their fixtures follow the vendor's documentation, and nobody has proven them.
"""
PROTOCOLS = """## Native protocols

What agent-mux speaks with each agent, and for which runs. `ways`: both, where somebody can be asked and more can be
said while the agent works. `streams`: what arrives in fragments; the rest arrives whole.
"""
_STREAMED = {"text": "text", "thinking": "thoughts", "tool_calls": "tool inputs"}
EVENTS = """## Events

Which events recordings of an agent produce. {mux} come from the mux itself, with every agent.
"""
SCENARIOS = """## Scenarios

The same scenarios for every agent, with the real CLI at its pinned version. `ok`: it passed. `never`: it is no part of
this agent; `not_yet`: the agent lacks it or has it broken upstream; `not_impl`: agent-mux lacks it. A gap is tested:
when the scenario passes, the gap is closed. Where a scenario goes two ways, `one_shot` is the cheapest protocol that
the options allow and `two_way` the one in which somebody can answer. Empty: not run with this agent.
"""


def support_matrix_page() -> str:
    """The page."""
    adapters = [adapter for adapter in _adapters() if find_fixtures(FIXTURES, adapter.agent)]
    parts = [INTRODUCTION, "## Agents\n", _agents(adapters), PROTOCOLS, _protocols(adapters)]
    parts += ["### What they do not tell\n", _losses(adapters)]
    parts += [EVENTS.format(mux=", ".join(f"`{name}`" for name in OF_ANY_AGENT)), _events(adapters)]
    parts += [homes_section(_adapters())]
    parts += [SCENARIOS, _scenarios(), "## Gaps\n", _gaps()]
    return "\n".join(part for part in parts if part)


def _adapters() -> list[Adapter]:
    registry = AdapterRegistry()
    return [registry.get(name) for name in sorted(registry.names()) if name not in NOT_AGENTS]


def _agents(adapters: Sequence[Adapter]) -> str:
    rows = []
    for adapter in adapters:
        folders = find_fixtures(FIXTURES, adapter.agent)
        versions = [(version, len(list(some))) for version, some in groupby(folders, lambda path: path.parts[-2])]
        recorded = ", ".join(f"{version} ({count})" for version, count in versions)
        recorded += " - documented, not recorded" if documented_only(adapter.agent) else ""
        kit = kits().get(adapter.agent)
        # An adapter that drives any program was driven with one of them: its package says which.
        pinned = [_pinned(adapter, pin) for pin in kit.pins] if kit else ["-"]
        tested = ", ".join(pinned)
        rows.append((adapter.display_name, f"`{adapter.agent}`", adapter.min_version, recorded, tested))
    return _table(("agent", "name", "minimum version", "recordings of version (count)", "driven live"), rows)


def _pinned(adapter: Adapter, pin: Pin) -> str:
    packages = (*((pin.pip,) if pin.pip else ()), *pin.npm)
    return packages[0] if adapter.takes_command and packages else pin.version


def _protocols(adapters: Iterable[Adapter]) -> str:
    rows = [
        (f"`{adapter.agent}`", f"`{protocol.name}`", "both" if protocol.two_way else "one",
         ", ".join(_STREAMED[kind] for kind in _STREAMED if kind in protocol.streams) or "-", protocol.chosen_for)
        for adapter in adapters for protocol in adapter.protocols.values()
    ]  # fmt: skip
    return _table(("agent", "protocol", "ways", "streams", "chosen for"), rows)


def _losses(adapters: Iterable[Adapter]) -> str:
    """A line for each protocol, or for those of an agent that lose the same."""
    return "".join(
        f"- {adapter.agent} ({', '.join(f'`{protocol.name}`' for protocol in alike)}): {_lost(loses)}.\n"
        for adapter in adapters
        for loses, alike in groupby(adapter.protocols.values(), key=lambda protocol: protocol.loses)
    )


def _lost(loses: tuple[str, ...] | None) -> str:
    return "not looked at" if loses is None else "; ".join(loses) or "nothing known"


def _events(adapters: Sequence[Adapter]) -> str:
    seen = {adapter.agent: _events_of(adapter.agent) for adapter in adapters}
    rows = [
        (f"`{event.type}`", *("●" if event.type in seen[adapter.agent] else "" for adapter in adapters))
        for events in CATEGORIES.values() for event in events if event.type not in OF_ANY_AGENT
    ]  # fmt: skip
    return _table(("event", *(adapter.agent for adapter in adapters)), rows)


@cache
def _events_of(agent: str) -> frozenset[str]:
    goldens = (folder / GOLDEN for folder in find_fixtures(FIXTURES, agent))
    return frozenset(json.loads(line)["type"] for golden in goldens for line in golden.read_bytes().splitlines())


def _scenarios() -> str:
    results = _results()
    agents = sorted(results)
    names = sorted({name for outcomes in results.values() for name in outcomes})
    rows = [(f"`{name}`", *(results[agent].get(name, "") for agent in agents)) for name in names]
    return _table(("scenario", *agents), rows)


def _gaps() -> str:
    rows = [
        (f"`{kit.agent}`", f"`{scenario}`", gap.kind, gap.reason)
        for kit in kits().values() for scenario, gap in sorted(kit.gaps.items())
    ]  # fmt: skip
    return _table(("agent", "scenario", "kind", "why"), rows)


def _results() -> Mapping[str, Mapping[str, str]]:
    """Agent (`pi@0.73.1` for an older version) -> scenario -> outcome."""
    found: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_lines(head, rows)) + "\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def documented_only(agent: str) -> bool:
    """Whether no recording of the agent is of a real CLI."""
    return all("documented" in load_fixture(folder).note for folder in find_fixtures(FIXTURES, agent))
