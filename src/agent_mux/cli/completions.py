"""Completion of values in shells: agents, models, profiles, sessions, run ids, and words of a fixed set.

A completer returns the candidates for an incomplete word. It reads files of this machine only, starts nothing, and
returns nothing if they cannot be read: a shell shows no errors while a line is typed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Completer = Callable[[Any], Iterable[str]]
"""Returns all candidates, given the context of the command line (`context.params` has the values typed so far)."""
COMPLETION_VARIABLE = "_AMUX_COMPLETE"
"""The variable that the completion scripts set when they request completions."""
MOST_CANDIDATES = 200  # sessions and runs, latest first


def agent_candidates(_context: Any = None) -> Iterable[str]:
    """Return the names of all agents."""
    from agent_mux.sdk.registry import AdapterRegistry

    return AdapterRegistry().names()


def agent_and_alias_candidates(_context: Any) -> Iterable[str]:
    """Return the names of all agents, and of agent-mux itself, for commands about configuration files."""
    return [*agent_candidates(), "amux"]


def profile_candidates(_context: Any = None) -> Iterable[str]:
    """Return the names of project and global profiles."""
    from agent_mux._util.paths import config_dir
    from agent_mux.settings.profiles import profiles_of

    return profiles_of(config_dir()).names()


def model_candidates(context: Any) -> Iterable[str]:
    """Return the models of the agent on the command line; without one, those of all agents."""
    from agent_mux.sdk.registry import AdapterRegistry

    adapters = AdapterRegistry()
    agent = _agent_on_line(context)
    chosen = [adapters.get(agent)] if agent in adapters else list(adapters)
    return sorted({model.model_id for adapter in chosen for model in adapter.models()})


def session_candidates(context: Any) -> Iterable[str]:
    """Return the ids of stored sessions of the agent on the command line, or of all agents, latest first."""
    from agent_mux._util.paths import config_dir
    from agent_mux.cli.session_options import session_filter
    from agent_mux.sessions.cache import SUMMARIES
    from agent_mux.sessions.client import Sessions

    sessions = Sessions(cache=config_dir() / SUMMARIES, on_skipped=lambda _: None)
    found = sessions.list(session_filter(agent=_agent_on_line(context) or None), limit=MOST_CANDIDATES)
    return [one.id for one in found]


def run_candidates(_context: Any) -> Iterable[str]:
    """Return the ids of recorded runs, latest first."""
    from agent_mux._util.paths import config_dir

    journals = sorted((config_dir() / "runs").glob("*.journal"), reverse=True)
    return [path.stem for path in journals[:MOST_CANDIDATES]]


def _agent_on_line(context: Any) -> str:
    """Return the agent that the command line names so far: by an option, an argument, or the first word of a run."""
    for name in ("agent", "name"):
        if isinstance(context.params.get(name), str):
            return str(context.params[name])
    words = context.params.get("words") or ()
    return str(words[0]) if words else ""


_BY_PARAMETER: Mapping[str, Completer] = {
    "agent": agent_candidates,
    "agents": agent_candidates,
    "fallback": agent_candidates,
    "model": model_candidates,
    "profile": profile_candidates,
    "session": session_candidates,
    "fork": session_candidates,
    "origin": session_candidates,
    "session_id": session_candidates,
    "shell": lambda _: ("bash", "zsh", "fish", "powershell"),
}
"""Completers by the name of the parameter, for all commands."""
_BY_COMMAND: Mapping[tuple[str, str], Completer] = {
    ("config", "agent"): agent_and_alias_candidates,
    ("doctor", "names"): agent_candidates,
    ("runs", "run"): run_candidates,
    ("runs", "run_id"): run_candidates,
    ("replay", "path"): run_candidates,
    ("sessions", "first"): session_candidates,
    ("sessions", "second"): session_candidates,
}
"""Completers of single parameters, by the first word of the command."""


def attach_completers(words: tuple[str, ...], command: Any) -> None:
    """Complete the values of the parameters of one command. Completion that the command defines itself is kept."""
    for parameter in command.params:
        completer = _BY_COMMAND.get((words[0] if words else "", parameter.name))
        if completer is None and parameter._custom_shell_complete is None:  # noqa: SLF001  # typer has no public way
            completer = _completer_of(parameter)
        if completer is not None:
            parameter._custom_shell_complete = _typer_completer(completer)  # noqa: SLF001


def _completer_of(parameter: Any) -> Completer | None:
    choices = (parameter.metavar or "").removesuffix("|...").split("|")
    if len(choices) > 1 and all(choice.replace("-", "_").isidentifier() and choice.islower() for choice in choices):
        return lambda _: choices
    return _BY_PARAMETER.get(parameter.name)


def _typer_completer(completer: Completer) -> Callable[[Any, Any, str], list[str]]:
    from agent_mux.errors import AgentMuxError

    def complete(context: Any, _parameter: Any, incomplete: str) -> list[str]:
        try:
            return [word for word in completer(context) if word.startswith(incomplete)]
        except (AgentMuxError, OSError, ValueError):
            return []

    return complete
