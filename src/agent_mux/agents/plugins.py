"""The plugins of agents: list, browse, search, install, update, uninstall, with the agents' own commands.

See docs/spec/run-api.md, section 7.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_mux._util.suggestions import closest_names
from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import ProgramResult, run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.installation import CommandArguments, Plugin, PluginCommands

LIST_TIMEOUT = 60.0  # seconds; some CLIs look for updates first
CHANGE_TIMEOUT = 600.0  # seconds; packages are downloaded
_NAME = re.compile(r"[^\s\x00-\x1f\x7f-][^\x00-\x1f\x7f]{0,400}")


@dataclass(frozen=True, slots=True)
class PluginChange:
    """A command that changed plugins, or would in a dry run."""

    agent: str
    """Registered name of the agent."""
    argv: tuple[str, ...]
    """The command of the agent that makes the change."""
    answer: ProgramResult | None = None
    """The output of the command; None in a dry run."""


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What an agent's lists contain about one plugin."""

    agent: str
    """Registered name of the agent."""
    name: str
    """Name of the plugin."""
    installed: Plugin | None
    """Its entry in the list of installed plugins."""
    available: Plugin | None
    """Its entry in the agent's catalog; None also if the agent's command cannot list its catalog."""


class Plugins:
    """The plugins of all agents. Blocking."""

    def __init__(self, installations: InstallationResolver | None = None) -> None:
        """Use these installations; default: those that this process finds."""
        self._installations = installations if installations is not None else InstallationResolver()

    def list(self, agent: str) -> tuple[Plugin, ...]:
        """Return the installed plugins. Raises CAPABILITY_ERROR, AGENT_NOT_INSTALLED, PLUGIN_ERROR."""
        adapter, commands = self._commands_of(agent)
        words, parse = commands.list, commands.parse
        if words is None or parse is None:
            raise CapabilityError(adapter.agent, f"listing its {commands.word}s")
        return self._run_and_parse(adapter, commands, words, parse)

    def search(self, agent: str, text: str) -> tuple[Plugin, ...]:
        """Return available plugins that match a text. Raises like `list`."""
        adapter, commands = self._commands_of(agent)
        if commands.search is None or commands.parse_search is None:
            raise CapabilityError(adapter.agent, f"searching for {commands.word}s")
        words = commands.search(_check_argument("text", text))
        found = self._run_and_parse(adapter, commands, words, commands.parse_search)
        return found if not commands.search_lists_all else tuple(plugin for plugin in found if _matches(plugin, text))

    def browse(self, agent: str) -> tuple[Plugin, ...]:
        """Return all available plugins of the agent's catalogs. Raises like `list`."""
        adapter, commands = self._commands_of(agent)
        if commands.search is None or commands.parse_search is None:
            hint = f"install a {commands.word} by name: `amux plugins install {adapter.agent} NAME`"
            raise CapabilityError(adapter.agent, f"browsing {commands.word}s", hint=hint)
        if not commands.search_lists_all:
            hint = f"its catalog can only be searched: `amux plugins search {adapter.agent} TEXT`"
            raise CapabilityError(adapter.agent, f"browsing all {commands.word}s", hint=hint)
        return self._run_and_parse(adapter, commands, commands.search(""), commands.parse_search)

    def info(self, agent: str, name: str) -> PluginInfo:
        """Return what the agent's lists contain about one plugin, by its name or the part before `@`.

        Raises like `list`; PLUGIN_ERROR if no list of the agent has the plugin, with similar names.
        """
        adapter, commands = self._commands_of(agent)
        _check_argument("name", name)
        installed = self.list(agent) if commands.list is not None else ()
        available = self._available(adapter, commands, name)
        found = PluginInfo(adapter.agent, name, _named(installed, name), _named(available, name))
        if found.installed is None and found.available is None:
            names = sorted({plugin.name for plugin in (*installed, *available)})
            close = closest_names(name, names, limit=3)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise AgentMuxError("PLUGIN_ERROR", f"no {commands.word} of {adapter.agent} is named {name!r}{hint}")
        return found

    def _available(self, adapter: Adapter, commands: PluginCommands, name: str) -> tuple[Plugin, ...]:
        if commands.search is None or commands.parse_search is None:
            return ()
        words = commands.search(name.partition("@")[0])
        return self._run_and_parse(adapter, commands, words, commands.parse_search)

    def install(self, agent: str, name: str, *, dry_run: bool = False) -> PluginChange:
        """Install a plugin, by a name or source that the agent accepts. Raises like `list`, and VALIDATION_ERROR."""
        return self._change(agent, "install", lambda commands: commands.install, name, dry_run=dry_run)

    def uninstall(self, agent: str, name: str, *, dry_run: bool = False) -> PluginChange:
        """Uninstall a plugin. Raises like `install`."""
        return self._change(agent, "uninstall", lambda commands: commands.uninstall, name, dry_run=dry_run)

    def update(self, agent: str, name: str | None = None, *, dry_run: bool = False) -> PluginChange:
        """Update one plugin, or all (None). Raises like `install`."""
        return self._change(agent, "update", lambda commands: commands.update, name, dry_run=dry_run)

    def _change(
        self,
        agent: str,
        verb: str,
        command_of: Callable[
            [PluginCommands], Callable[[str], CommandArguments] | Callable[[str | None], CommandArguments] | None
        ],
        name: str | None,
        *,
        dry_run: bool,
    ) -> PluginChange:
        adapter, commands = self._commands_of(agent)
        words_for = command_of(commands)
        if words_for is None:
            raise CapabilityError(adapter.agent, f"{verb} for its {commands.word}s")
        try:
            argument = name if name is None else _check_argument("name", name)
            words = words_for(argument)  # type: ignore[arg-type]  # None for update only
        except ValueError as error:
            raise ValidationError([FieldError("name", name, str(error))]) from error
        if dry_run:
            return PluginChange(adapter.agent, (self._program(adapter), *words))
        answer = self._run(adapter, commands, words, CHANGE_TIMEOUT)
        return PluginChange(adapter.agent, answer.argv, answer)

    def _run(
        self, adapter: Adapter, commands: PluginCommands, words: CommandArguments, timeout: float
    ) -> ProgramResult:
        answer = run_program(
            (self._program(adapter), *words),
            environ={**self._installations.environ, **commands.environment},
            timeout=timeout,
            cwd=self._installations.paths().project,
        )
        if answer.exit_code != 0:
            shown = " ".join((Path(answer.argv[0]).name, *words))
            raise AgentMuxError("PLUGIN_ERROR", f"`{shown}` failed (exit code {answer.exit_code}): {answer.error_line}")
        return answer

    def _run_and_parse(
        self,
        adapter: Adapter,
        commands: PluginCommands,
        words: CommandArguments,
        parse: Callable[[str], tuple[Plugin, ...]],
    ) -> tuple[Plugin, ...]:
        answer = self._run(adapter, commands, words, LIST_TIMEOUT)
        try:
            return parse(answer.stderr if commands.is_on_stderr else answer.stdout)
        except (ValueError, RecursionError) as error:
            message = f"cannot parse the plugin list of {adapter.agent}: {error}; update agent-mux"
            raise AgentMuxError("PLUGIN_ERROR", message) from error

    def _program(self, adapter: Adapter) -> str:
        return find_executable(adapter, self._installations.environ)

    def _commands_of(self, agent: str) -> tuple[Adapter, PluginCommands]:
        return self._installations.find(agent, lambda parts: parts.plugins, "plugins")


def _check_argument(field: str, value: str) -> str:
    """Return a value that is safe as a single argument: one line that the agent does not take for a flag."""
    if not _NAME.fullmatch(value):
        raise ValidationError([FieldError(field, value, "text on one line that does not begin with a hyphen")])
    return value


def _named(plugins: Iterable[Plugin], name: str) -> Plugin | None:
    """Return the plugin of this name, else the only one whose name begins with it and `@`."""
    found = list(plugins)
    exact = next((plugin for plugin in found if plugin.name == name), None)
    in_catalogs = [plugin for plugin in found if plugin.name.partition("@")[0] == name]
    return exact or (in_catalogs[0] if len(in_catalogs) == 1 else None)


def _matches(plugin: Plugin, text: str) -> bool:
    values = (plugin.name, plugin.description, plugin.source)
    return any(text.casefold() in (value or "").casefold() for value in values)
