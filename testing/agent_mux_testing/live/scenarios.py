"""The scenarios of the drift check: few, quick, and the same for every agent that supports them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_mux.sdk.interactions import Approve, Deny
from agent_mux_testing.live.answers import answer, refuse
from agent_mux_testing.live.kit import LiveKit, Way
from agent_mux_testing.live.parts import Edit, Read, Say, Shell, Think, Write
from agent_mux_testing.model_server import ScriptStep

__all__ = ["Scenario", "scenarios_for"]

Model = Callable[[LiveKit, Path], tuple[ScriptStep, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run: the answers of the model, and the options of the run."""

    name: str
    model: Model
    options: Mapping[str, Any] = field(default_factory=dict)
    way: Way | None = None
    """None: for every agent; otherwise for agents whose kit names this way."""
    is_extra: bool = False
    """Whether the scenario is only for agents that use a further protocol in it."""


def _text(kit: LiveKit, workspace: Path) -> tuple[ScriptStep, ...]:
    return (answer(kit, workspace, Think("Let me think."), Say("Hello from the script.")),)


def _tools(kit: LiveKit, workspace: Path) -> tuple[ScriptStep, ...]:
    parts = (Shell("echo hi"), Shell("echo oops >&2; exit 3"), Write("a.txt", "one\ntwo\n"), Read("a.txt"),
             Edit("a.txt", "two", "TWO"))  # fmt: skip
    return (*(answer(kit, workspace, Say("Next."), part) for part in parts), answer(kit, workspace, Say("Done.")))


def _permission(kit: LiveKit, workspace: Path) -> tuple[ScriptStep, ...]:
    return answer(kit, workspace, Shell("touch made", asks=True)), answer(kit, workspace, Say("Done."))


def _unauthorized(kit: LiveKit, workspace: Path) -> tuple[ScriptStep, ...]:  # noqa: ARG001  # the same for all agents
    return (refuse(kit.api, "unauthorized", repeat=True),)


_SCENARIOS = (
    Scenario(name="text", model=_text, way="one_shot"),
    Scenario(name="text_two_way", model=_text, way="two_way", options={"on_approval_request": lambda _: Approve()}),
    Scenario(name="tools", model=_tools, way="one_shot"),
    Scenario(name="tools_asking", model=_tools, options={"on_approval_request": lambda _: Approve()}),
    Scenario(name="tools_unstreamed", model=_tools, options={"stream": False}, is_extra=True),
    Scenario(
        name="approve",
        model=_permission,
        options={"approval_mode": "prompt", "on_approval_request": lambda _: Approve()},
    ),
    Scenario(
        name="deny",
        model=_permission,
        options={"approval_mode": "prompt", "on_approval_request": lambda _: Deny("not here")},
    ),
    Scenario(name="unauthorized", model=_unauthorized),
)


def scenarios_for(kit: LiveKit) -> Iterator[Scenario]:
    """Yield the scenarios for this agent, by the ways that its kit names."""
    return (scenario for scenario in _SCENARIOS if scenario.way in (None, *kit.ways))
