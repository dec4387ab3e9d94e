"""The commands of a session in the editor: the skills that the agent loads, to be typed as `/name`.

Agents differ in how a user names a skill, so the prompt names it in words.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acp.schema import AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput

from agent_mux._util.logs import LOGGER
from agent_mux.acp_server.prompts import EditorPrompt
from agent_mux.agents.definitions import Definition, skills
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry

MAX_COMMANDS = 200
_NAME = re.compile(r"[^\s/]+")
_CALL = re.compile(r"/(?P<name>[^\s/]+)(?:\s+(?P<arguments>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SessionCommands:
    """The commands of one session, by name."""

    paths: Mapping[str, Path]
    """The main file of each skill."""
    available: Sequence[AvailableCommand] = ()

    def update(self) -> AvailableCommandsUpdate | None:
        """Return the update that lists the commands; None if there are none."""
        if not self.available:
            return None
        commands = list(self.available)
        return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)

    def expand(self, prompt: EditorPrompt) -> EditorPrompt:
        """Return the prompt in words if it calls a command."""
        call = _CALL.fullmatch(prompt.text.strip())
        path = None if call is None else self.paths.get(call["name"])
        if call is None or path is None:
            return prompt
        words = f"Use the skill {call['name']} ({path})."
        arguments = (call["arguments"] or "").strip()
        return replace(prompt, text=f"{words}\n\n{arguments}" if arguments else words)


def find_commands(adapters: AdapterRegistry, agent: str, cwd: str) -> SessionCommands:
    """Return the skills that an agent loads in a directory. Blocking. One that cannot be listed is logged."""
    if adapters.get(agent).installation().skills is None:
        return SessionCommands({})
    try:
        found = skills(InstallationResolver(adapters, project=cwd)).list(agent)
    except (AgentMuxError, OSError) as error:
        logging.getLogger(LOGGER).warning("the skills of %s are not available as commands: %s", agent, error)
        return SessionCommands({})
    return commands_of(found)


def commands_of(found: Iterable[Definition]) -> SessionCommands:
    """Return the commands for skills. Of several with one name, the one of the project counts."""
    usable = [one for one in found if one.problem is None and _NAME.fullmatch(one.name)]
    named = {one.name: one for one in sorted(usable, key=lambda one: one.scope == "project")}
    listed = [named[name] for name in sorted(named)][:MAX_COMMANDS]
    return SessionCommands({one.name: one.path for one in listed}, tuple(map(_command, listed)))


def _command(skill: Definition) -> AvailableCommand:
    hint = AvailableCommandInput(root=UnstructuredCommandInput(hint="what to do with it"))
    return AvailableCommand(name=skill.name, description=skill.description or f"skill {skill.name}", input=hint)
