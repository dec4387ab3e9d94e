"""The README's table of agents, from the adapters, the kits and the last run of the real CLIs."""

import re
from collections.abc import Mapping, Sequence

from docs.pages.support_matrix import ROOT, documented_only, drivable_adapters, live_results, pinned_version, table

from agent_mux.sdk.adapter import Adapter
from agent_mux_testing.live import LiveKit, kits

README = ROOT / "README.md"
_GENERATED = re.compile(r"(<!-- agents: begin [^\n]*-->\n).*?(<!-- agents: end -->)", re.DOTALL)
COLUMNS: Mapping[str, Sequence[str]] = {
    "approvals": ("approve", "deny"),
    "file diffs": ("file_diffs",),
    "conversation": ("multi_turn",),
    "interrupt": ("interrupt_then_continue",),
    "steer": ("steer",),
    "resume": ("resume",),
    "questions": ("question_answered",),
    "MCP tools": ("mcp_tool",),
}
"""Heading of a column -> the scenarios that prove it."""
NOT_VERIFIED = "not verified: written from the vendor's documentation"
TERMINAL = "not applicable: drives programs by their screen"
LAST = ("acp", "terminal", "native")
"""Agents that are not programs of one vendor, after all others."""
NAMES = {"acp": "any agent with the [Agent Client Protocol](https://agentclientprotocol.com)",
         "terminal": "any program at a terminal", "native": "the embedded agent"}  # fmt: skip


def readme_page() -> str:
    """Return the README with a current table. Raise ValueError if the markers are missing."""
    text = README.read_text("utf-8")
    page, count = _GENERATED.subn(lambda markers: f"{markers[1]}{agents_table()}{markers[2]}", text)
    if count != 1:
        raise ValueError(f"{README} needs one pair of the markers `agents: begin` and `agents: end`; found {count}")
    return page


def agents_table() -> str:
    """Return the table."""
    adapters = sorted(drivable_adapters(), key=lambda adapter: (adapter.agent in LAST, adapter.agent))
    return table(("agent", "`amux run ...`", "CLI tested", *COLUMNS), [_row(adapter) for adapter in adapters])


def _row(adapter: Adapter) -> tuple[str, ...]:
    name = NAMES.get(adapter.agent, adapter.display_name)
    kit = kits().get(adapter.agent)
    if kit is None:
        note = NOT_VERIFIED if documented_only(adapter.agent) else TERMINAL
        return (name, f"`{adapter.agent}`", note, *("" for _ in COLUMNS))
    return (name, f"`{adapter.agent}`", pinned_version(adapter, kit.pins[0]), *_marks(kit))


def _marks(kit: LiveKit) -> tuple[str, ...]:
    outcomes = live_results().get(kit.agent, {})
    return tuple("✓" if all(_passes(outcomes, name) for name in names) else "-" for names in COLUMNS.values())


def _passes(outcomes: Mapping[str, str], scenario: str) -> bool:
    """Return whether the scenario passes in one of its variants (`scenario/one_shot`, `scenario/two_way`)."""
    return any(outcome == "ok" for name, outcome in outcomes.items() if name.split("/")[0] == scenario)
