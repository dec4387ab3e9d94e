"""The support matrix: what each agent reports and can do, from recordings and the last run of the real CLIs.

No entry is written by hand. Events come from the goldens of the fixtures, scenarios from `tests/e2e/results.json`,
which `make e2e-results` writes, protocols and their losses from the adapters.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from agent_mux.events import CATEGORIES
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths, ConfigFile
from agent_mux.sdk.documents import field_name
from agent_mux.sdk.installation import AgentInstallation, DefinitionFolders
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.versions import range_of
from agent_mux_testing.conformance.checks import GOLDEN
from agent_mux_testing.fixtures import find_fixtures, load_fixture
from agent_mux_testing.live import Pin, kits

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
RESULTS = ROOT / "tests" / "e2e" / "results.json"
OF_ANY_AGENT = ("aborted", "paused", "resumed", "timeout")
"""Events that agent-mux itself emits, with every agent."""
NOT_AGENTS = frozenset({"replay"})
INTRODUCTION = """# Support matrix

<!-- Written by docs/generate.py from fixtures/, tests/e2e/results.json and the adapters. Do not edit. -->

Every entry on this page was observed: in a recording of the real CLI (in `fixtures/`), or in the last run of the real
CLIs with the scripted model (`make e2e`). Agents whose CLI cannot be installed from a registry are marked as
documented: their fixtures follow the vendor's documentation and are not verified.
"""
VERSIONS = """## Agents

`amux detect` and every run compare the installed version with the recordings. A version with recordings that prove
every way in which the agent is driven is `tested`; another one within the tested range is `in_range`; the others are
`unknown`. Recordings of versions before the range prove a part of them. No version is refused.
"""
PROTOCOLS = """## Native protocols

The protocols that agent-mux uses with each agent, and for which runs. `ways`: `both` if approvals, questions and
further prompts are possible during a run. `streams`: what arrives in fragments; the rest arrives whole.
"""
_STREAMED = {"text": "text", "thinking": "thoughts", "tool_calls": "tool inputs"}
EVENTS = """## Events

The events in the recordings of each agent. agent-mux itself emits {mux} with every agent.
"""
PLACE = AgentPaths(environ={"HOME": "/HOME"}, project=Path("/PROJECT"))
HOMES = """## Homes

The files of each agent that `amux config`, `mcp`, `skill`, `agent`, `plugin`, `hooks` and `auth` use. Later files take
precedence. The scenarios `home_...` below verify them with the real CLIs.
"""
SCENARIOS = """## Scenarios

The same scenarios for every agent, with the real CLI at its pinned version. `ok`: passed. `never`: the agent does not
have the feature by design; `not_yet`: the agent lacks the feature or it is broken upstream; `not_impl`: agent-mux lacks
it. Gaps are tested: a gap whose scenario passes must be removed. For scenarios with two variants, `one_shot` uses the
cheapest protocol that supports the options, and `two_way` one with approvals. Empty: not run with this agent.
"""


BOUND_OPTIONS = ("allowed_tools", "disallowed_tools", "add_dirs", "fallback_model", "native_options", "extra_args")
OPTIONS = """\
## Settings of the agents themselves

[Options that are bound to a setting of the agent](../how-to/control-a-run.md#pass-settings-of-the-agent-itself).
An agent without the setting refuses the option with a `CapabilityError`. The last column has the keys of
`thinking_override` that the agent takes.
"""


def support_matrix_page() -> str:
    """Return the page."""
    adapters = [adapter for adapter in drivable_adapters() if find_fixtures(FIXTURES, adapter.agent)]
    parts = [INTRODUCTION, VERSIONS, _agents(adapters), PROTOCOLS, _protocols(adapters)]
    parts += ["### What they do not report\n", _losses(adapters)]
    parts += [EVENTS.format(mux=", ".join(f"`{name}`" for name in OF_ANY_AGENT)), _events(adapters)]
    parts += [OPTIONS, _options(drivable_adapters())]
    parts += [_homes(drivable_adapters())]
    parts += [SCENARIOS, _scenarios(), "## Gaps\n", _gaps()]
    return "\n".join(part for part in parts if part)


def drivable_adapters() -> list[Adapter]:
    """Return the adapters of programs, without the replay."""
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
        # An adapter that drives any program was tested with one of them: its package names it.
        pinned = [pinned_version(adapter, pin) for pin in kit.pins] if kit else ["-"]
        tested = ", ".join(pinned)
        in_range = range_of(adapter.tested_versions) if adapter.tested_versions else "-"
        rows.append((adapter.display_name, f"`{adapter.agent}`", in_range, recorded, tested))
    return table(("agent", "name", "tested range", "recordings of version (count)", "driven live"), rows)


def pinned_version(adapter: Adapter, pin: Pin) -> str:
    """Return the version that the live tests drive, with the package for an adapter that drives any program."""
    packages = (*((pin.pip,) if pin.pip else ()), *pin.npm)
    return packages[0] if adapter.takes_command and packages else pin.version


def _protocols(adapters: Iterable[Adapter]) -> str:
    rows = [
        (f"`{adapter.agent}`", f"`{protocol.name}`", "both" if protocol.two_way else "one",
         ", ".join(_STREAMED[kind] for kind in _STREAMED if kind in protocol.streams) or "-", protocol.chosen_for)
        for adapter in adapters for protocol in adapter.protocols.values()
    ]  # fmt: skip
    return table(("agent", "protocol", "ways", "streams", "chosen for"), rows)


def _options(adapters: Iterable[Adapter]) -> str:
    """Return who has which option of those that are bound to the agent's own settings."""
    rows = []
    for adapter in adapters:
        known = adapter.capabilities
        marks = ["yes" if getattr(known, name) else "-" for name in BOUND_OPTIONS]
        keys = ", ".join(f"`{key}`" for key in known.thinking_override) or "-"
        rows.append((f"`{adapter.agent}`", "yes" if "plan" in known.approval_modes else "-", *marks, keys))
    return table(("agent", "plan mode", *(f"`{name}`" for name in BOUND_OPTIONS), "`thinking_override`"), rows)


def _losses(adapters: Iterable[Adapter]) -> str:
    """Return a line for each protocol, or for several of one agent with the same losses."""
    return "".join(
        f"- {adapter.agent} ({', '.join(f'`{protocol.name}`' for protocol in alike)}): {_lost(loses)}.\n"
        for adapter in adapters
        for loses, alike in groupby(adapter.protocols.values(), key=lambda protocol: protocol.loses)
    )


def _lost(loses: tuple[str, ...] | None) -> str:
    return "not examined" if loses is None else "; ".join(loses) or "none known"


def _events(adapters: Sequence[Adapter]) -> str:
    event_types = {adapter.agent: _events_of(adapter.agent) for adapter in adapters}
    rows = [
        (f"`{event.type}`", *("●" if event.type in event_types[adapter.agent] else "" for adapter in adapters))
        for events in CATEGORIES.values() for event in events if event.type not in OF_ANY_AGENT
    ]  # fmt: skip
    return table(("event", *(adapter.agent for adapter in adapters)), rows)


@cache
def _events_of(agent: str) -> frozenset[str]:
    goldens = (folder / GOLDEN for folder in find_fixtures(FIXTURES, agent))
    return frozenset(json.loads(line)["type"] for golden in goldens for line in golden.read_bytes().splitlines())


def _scenarios() -> str:
    results = live_results()
    agents = sorted(results)
    names = sorted({name for outcomes in results.values() for name in outcomes})
    rows = [(f"`{name}`", *(results[agent].get(name, "") for agent in agents)) for name in names]
    return table(("scenario", *agents), rows)


def _gaps() -> str:
    named = [
        pair for kit in kits().values()
        for pair in ((kit.agent, kit.gaps), *((f"{kit.agent}@{pin.version}", pin.gaps) for pin in kit.pins))
    ]  # fmt: skip
    rows = [
        (f"`{agent}`", f"`{scenario}`", gap.kind, gap.reason)
        for agent, gaps in named for scenario, gap in sorted(gaps.items())
    ]  # fmt: skip
    return table(("agent", "scenario", "kind", "why"), rows)


def live_results() -> Mapping[str, Mapping[str, str]]:
    """Return the outcomes by agent (`pi@0.73.1` for an older version) and scenario."""
    results: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join(_lines(head, rows)) + "\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def documented_only(agent: str) -> bool:
    """Return whether no recording of the agent is of a real CLI."""
    return all("documented" in load_fixture(folder).note for folder in find_fixtures(FIXTURES, agent))


def _homes(adapters: Iterable[Adapter]) -> str:
    """Return the section on the files of all agents that have any."""
    return "\n".join(
        [HOMES, *(_home(adapter) for adapter in adapters if adapter.installation() != AgentInstallation())]
    )


def _home(adapter: Adapter) -> str:
    lines = "\n".join(f"- {kind}: {places}" for kind, places in _places(adapter.installation()) if places)
    return f"### {adapter.display_name}\n\n{lines}\n"


def _places(home: AgentInstallation) -> Iterator[tuple[str, str]]:
    if home.config is not None:
        yield "settings", _files(home.config.files)
    if home.mcp is not None:
        yield "MCP servers", _files(home.mcp.files)
    yield "skills", _folders(home.skills)
    yield "sub-agents", _folders(home.subagents)
    if home.plugins is not None:
        verbs = ("list", "search", "install", "uninstall", "update")
        yield f"plugins (`{home.plugins.word}`)", ", ".join(verb for verb in verbs if getattr(home.plugins, verb))
    if home.hooks is not None:
        yield "hooks", f"{_files(home.hooks.files)}: {', '.join(f'`{name}`' for name in home.hooks.types.values())}"
    if home.auth is not None:
        yield "credentials", "; ".join(_method(method.display_name, method.variables) for method in home.auth.methods)
    yield "variables that its commands see", ", ".join(f"`{name}`" for name in home.host_variables)


def _files(files: Iterable[ConfigFile]) -> str:
    """List the files that have a default path, without those that only a variable names."""
    placed = [(file, file.path(PLACE)) for file in files]
    return "; ".join(_file(file, path) for file, path in placed if path is not None)


def _file(file: ConfigFile, path: Path) -> str:
    table = field_name(file.table(PLACE))
    part = f" (`{_neutral(table)}`)" if table else ""
    return f"{file.scope} `{_neutral(str(path))}`{part}{_kind(file)}"


def _kind(file: ConfigFile) -> str:
    return ", if it exists" if file.is_optional else " (shared)" if file.is_shared else ""


def _folders(definitions: DefinitionFolders | None) -> str:
    if definitions is None:
        return ""
    name = f"/<name>/{definitions.file}" if definitions.layout == "folder" else f"/<name>{definitions.file}"
    placed = [(folder, folder.path(PLACE)) for folder in definitions.folders]
    return "; ".join(
        f"{folder.scope} `{_neutral(str(path))}{name}`{' (shared)' if folder.is_shared else ''}"
        for folder, path in placed
        if path is not None
    )


def _method(display_name: str, variables: tuple[str, ...]) -> str:
    return f"{display_name} ({', '.join(f'`{name}`' for name in variables)})" if variables else display_name


def _neutral(path: str) -> str:
    return path.replace("/HOME", "~").replace("/PROJECT", "<project>")
