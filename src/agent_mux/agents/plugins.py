"""The plugins of agents, on one object: the agents' own commands do it. Source: run API, section 7."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import ProgramResult, run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.installation import Plugin, PluginCommands, Words

LIST_TIMEOUT = 60.0  # seconds; some CLIs look for updates first
CHANGE_TIMEOUT = 600.0  # seconds; packages are fetched
_NAME = re.compile(r"[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]{0,400}")


@dataclass(frozen=True, slots=True)
class PluginChange:
    """What was run for a plugin, or would be."""

    agent: str
    argv: tuple[str, ...]
    answer: ProgramResult | None = None
    """None: nothing was run."""


class Plugins:
    """The plugins of all agents. Blocking."""

    def __init__(self, homes: InstallationResolver | None = None) -> None:
        """Take where to look; default: what this process would find."""
        self._homes = homes if homes is not None else InstallationResolver()

    def list(self, agent: str) -> tuple[Plugin, ...]:
        """What is installed. Raises CAPABILITY_ERROR, AGENT_NOT_INSTALLED, PLUGIN_ERROR."""
        adapter, commands = self._of(agent)
        words, parse = commands.list, commands.parse
        if words is None or parse is None:
            raise CapabilityError(adapter.agent, f"listing its {commands.word}s")
        return self._parsed(adapter, commands, words, parse)

    def search(self, agent: str, text: str) -> tuple[Plugin, ...]:
        """What could be installed. Errors as for `list`."""
        adapter, commands = self._of(agent)
        if commands.search is None or commands.parse_search is None:
            raise CapabilityError(adapter.agent, f"searching for {commands.word}s")
        words = commands.search(_name("text", text))
        found = self._parsed(adapter, commands, words, commands.parse_search)
        return found if not commands.search_lists_all else tuple(one for one in found if _says(one, text))

    def install(self, agent: str, name: str, *, dry_run: bool = False) -> PluginChange:
        """Install one, by the name or source that the agent understands. Raises as `list`, and VALIDATION_ERROR."""
        return self._change(agent, "install", lambda commands: commands.install, name, dry_run=dry_run)

    def uninstall(self, agent: str, name: str, *, dry_run: bool = False) -> PluginChange:
        """Remove one. Errors as for `install`."""
        return self._change(agent, "uninstall", lambda commands: commands.uninstall, name, dry_run=dry_run)

    def update(self, agent: str, name: str | None = None, *, dry_run: bool = False) -> PluginChange:
        """Update one, or all of them. Errors as for `install`."""
        return self._change(agent, "update", lambda commands: commands.update, name, dry_run=dry_run)

    def _change(
        self,
        agent: str,
        verb: str,
        words_of: Callable[[PluginCommands], Callable[[str], Words] | Callable[[str | None], Words] | None],
        name: str | None,
        *,
        dry_run: bool,
    ) -> PluginChange:
        adapter, commands = self._of(agent)
        words_for = words_of(commands)
        if words_for is None:
            raise CapabilityError(adapter.agent, f"{verb} for its {commands.word}s")
        try:
            words = words_for(name if name is None else _name("name", name))  # type: ignore[arg-type]  # update: None
        except ValueError as error:
            raise ValidationError([FieldError("name", name, str(error))]) from error
        if dry_run:
            return PluginChange(adapter.agent, (self._program(adapter), *words))
        answer = self._run(adapter, commands, words, CHANGE_TIMEOUT)
        return PluginChange(adapter.agent, answer.argv, answer)

    def _run(self, adapter: Adapter, commands: PluginCommands, words: Words, timeout: float) -> ProgramResult:
        place = self._homes.place()
        answer = run_program(
            (self._program(adapter), *words),
            environ={**self._homes.environ, **commands.environment},
            timeout=timeout,
            cwd=place.project,
        )
        if answer.exit_code != 0:
            ran = " ".join((Path(answer.argv[0]).name, *words))
            raise AgentMuxError("PLUGIN_ERROR", f"`{ran}` failed (exit code {answer.exit_code}): {answer.error_line}")
        return answer

    def _parsed(
        self, adapter: Adapter, commands: PluginCommands, words: Words, parse: Callable[[str], tuple[Plugin, ...]]
    ) -> tuple[Plugin, ...]:
        answer = self._run(adapter, commands, words, LIST_TIMEOUT)
        try:
            return parse(answer.stderr if commands.is_on_stderr else answer.stdout)
        except (ValueError, RecursionError) as error:
            unknown = f"{adapter.agent} listed its plugins in a way that is not known: {error}; update agent-mux"
            raise AgentMuxError("PLUGIN_ERROR", unknown) from error

    def _program(self, adapter: Adapter) -> str:
        return find_executable(adapter, self._homes.environ)

    def _of(self, agent: str) -> tuple[Adapter, PluginCommands]:
        return self._homes.find(agent, lambda home: home.plugins, "plugins")


def _name(field: str, name: str) -> str:
    """A word that stays one, and is no flag."""
    if not _NAME.fullmatch(name):
        raise ValidationError([FieldError(field, name, "a text on one line that does not begin with a hyphen")])
    return name


def _says(plugin: Plugin, text: str) -> bool:
    return any(text.casefold() in (said or "").casefold() for said in (plugin.name, plugin.description, plugin.source))
