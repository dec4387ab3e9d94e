"""The agent of a run: a built-in one, or one of an agent file, and what it means for the settings of `start`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_loop.cli.arguments import MODES
from agent_loop.cli.errors import UsageError
from agent_loop.cli.home import agents_directories
from agent_loop.cli.protocol import StartCommand
from agent_loop.cli.stream import ApprovalMode
from agent_loop.presets.agent_file import FoundAgent, find_agents, read_agent
from agent_loop.presets.builtin import BUILD_AGENT, BUILT_IN
from agent_loop.presets.preset import Preset, compose_presets
from agent_loop.presets.registry import AgentRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAgent:
    """The agent of a run, and the settings of the run with those that the agent has."""

    preset: Preset
    start: StartCommand
    registry: AgentRegistry
    """All agents that were found, to which tasks can be delegated."""
    problems: tuple[str, ...]
    """A sentence for each agent file that is skipped."""
    mode_after_plan: ApprovalMode | None = None
    """The approval mode once the user has accepted a plan; None for an agent that presents none."""


@dataclass(frozen=True, slots=True)
class KnownAgents:
    """The agents that a run can name. Those of files have their path."""

    files: tuple[FoundAgent, ...]
    problems: tuple[str, ...]

    def registry(self) -> AgentRegistry:
        """Return the built-in agents and those of files."""
        return AgentRegistry([*BUILT_IN, *(each.preset for each in self.files)])


def known_agents(environ: Mapping[str, str], directory: Path) -> KnownAgents:
    """Return the agents of the user's directory and of the project; those of the project take precedence. Blocking."""
    files: dict[str, FoundAgent] = {}
    problems: list[str] = []
    for place, project in agents_directories(environ, directory):
        found, skipped = find_agents(place, project=project)
        problems += skipped
        for each in found:
            if any(each.preset.name == preset.name for preset in BUILT_IN):
                problems.append(f"the agent file {each.path} is skipped: {each.preset.name!r} is a built-in agent")
            else:
                files[str(each.preset.name)] = each
    return KnownAgents(tuple(files.values()), tuple(problems))


def choose_agent(start: StartCommand, environ: Mapping[str, str], directory: Path, began_with: str = "") -> ChosenAgent:
    """Return the agent of a run: by default the one that the session `began_with`, if it still exists, else "build".

    Blocking.

    Raises `UsageError` if `start` names an agent and a file, or an agent that does not exist, and `ConfigurationError`
    for a file that cannot be used.
    """
    if start.agent is not None and start.agent_file is not None:
        raise UsageError("--agent and --agent-file cannot be combined; a file has its own agent")
    known = known_agents(environ, directory)
    registry = known.registry()
    preset = BUILD_AGENT
    if start.agent_file is not None:
        preset = read_agent(directory / Path(os.path.expanduser(start.agent_file)))
    elif start.agent is not None:
        preset = _named(start.agent, registry, known.problems)
    elif any(each.name == began_with for each in registry):
        preset = registry.get(began_with)
    preset = compose_presets(preset, Preset(excluded_tools=tuple(start.disallowed_tools)))
    plans = preset.mode == "plan"
    return ChosenAgent(
        preset=preset,
        start=with_preset(start, preset),
        registry=registry,
        problems=known.problems,
        mode_after_plan=_mode_after_plan(start) if plans else None,
    )


def with_preset(start: StartCommand, preset: Preset) -> StartCommand:
    """Return the settings with those of the agent, where `start` has none. Lists of tools and directories add up.

    An agent that plans begins in mode "plan", whatever the mode of `start`.
    """
    fields: dict[str, Any] = {
        "allowed_tools": [*start.allowed_tools, *preset.approved_tools],
        "disallowed_tools": list(preset.excluded_tools),
        "skills": [*map(str, preset.skills or ()), *start.skills],
    }
    if start.model is None and preset.model is not None:
        fields["model"] = preset.model
        fields["fallback_models"] = start.fallback_models or list(preset.fallbacks or ())
    if preset.mode is not None and (start.approval_mode is None or preset.mode == "plan"):
        fields |= MODES[preset.mode]
    return replace(start, **fields)


def without_user(start: StartCommand) -> StartCommand:
    """Return the settings of a run without a user, in which calls are denied that one would have to approve."""
    if start.accept_edits or start.approval_mode not in {None, "prompt"}:
        return start
    return replace(start, approval_mode="deny")


def _mode_after_plan(start: StartCommand) -> ApprovalMode:
    """Return the mode that `start` asks for, in which the agent carries out its plan: "prompt" by default."""
    requested = start.approval_mode
    return "prompt" if requested is None or requested == "plan" else requested


def _named(name: str, registry: AgentRegistry, problems: tuple[str, ...]) -> Preset:
    if all(preset.name != name for preset in registry):
        names = ", ".join(sorted(str(preset.name) for preset in registry))
        skipped = "".join(f"; {problem}" for problem in problems)
        raise UsageError(f"no agent is named {name!r}; use one of {names}, or --agent-file with a path{skipped}")
    return registry.get(name)
