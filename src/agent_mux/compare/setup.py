"""What a comparison starts with: made by `preparing`, carried out by `engine`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux.compare.ledger import ComparisonFolder
from agent_mux.compare.places import Places
from agent_mux.compare.records import ComparisonPlan
from agent_mux.compare.request import ComparisonRequest
from agent_mux.compare.schedule import Lane
from agent_mux.compare.trials import RunClient


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSetup:
    """What a comparison needs to start: its request, its folder, and what the client knows."""

    request: ComparisonRequest
    plan: ComparisonPlan
    folder: ComparisonFolder
    places: Places
    starter: RunClient
    lanes: Mapping[str, Lane]
    """By the name of the candidate."""
    environments: Mapping[str, Mapping[str, str]]
    """The environment of the agent by the name of the candidate, without what trials add."""
    sharing: tuple[str, ...]
    """Candidates whose trials share the user's configuration directory of the agent."""
    solutions: tuple[Path, ...]
    """Files and directories that agents must not read."""
    needed: tuple[Path, ...]
    """Programs and directories that agents need."""
    environ: Mapping[str, str]
    is_resumed: bool = False
