"""The scenarios by which drift is looked for: few, quick, and the same for every agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_mux.run.interaction import Approve, Deny
from agent_mux.testing.live.answers import answer
from agent_mux.testing.live.kit import LiveKit
from agent_mux.testing.live.parts import Edit, Read, Say, Shell, Think, Write
from agent_mux.testing.live.refusals import refuse
from agent_mux.testing.model_server import Step

__all__ = ["SCENARIOS", "Scenario"]

Model = Callable[[LiveKit, Path], tuple[Step, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run: what the model says, and what the run is asked."""

    name: str
    model: Model
    options: Mapping[str, Any] = field(default_factory=dict)


def _text(kit: LiveKit, workspace: Path) -> tuple[Step, ...]:
    return (answer(kit, workspace, Think("Let me think."), Say("Hello from the script.")),)


def _tools(kit: LiveKit, workspace: Path) -> tuple[Step, ...]:
    parts = (Shell("echo hi"), Shell("echo oops >&2; exit 3"), Write("a.txt", "one\ntwo\n"), Read("a.txt"),
             Edit("a.txt", "two", "TWO"))  # fmt: skip
    return (*(answer(kit, workspace, Say("Next."), part) for part in parts), answer(kit, workspace, Say("Done.")))


def _permission(kit: LiveKit, workspace: Path) -> tuple[Step, ...]:
    return answer(kit, workspace, Shell("touch made", asks=True)), answer(kit, workspace, Say("Done."))


def _unauthorized(kit: LiveKit, workspace: Path) -> tuple[Step, ...]:  # noqa: ARG001  # all models are alike
    return (refuse(kit.api, "unauthorized", repeat=True),)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="text", model=_text),
    Scenario(name="text_two_way", model=_text, options={"on_approval_request": lambda _: Approve()}),
    Scenario(name="tools", model=_tools),
    Scenario(name="tools_two_way", model=_tools, options={"on_approval_request": lambda _: Approve()}),
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
