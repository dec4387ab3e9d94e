"""Candidates for values on the command line: agents, models, sessions, runs, and others by name.

`SOURCES` has a function for each kind of value; the command catalog names the kind of each parameter. A function reads
files of this machine only, starts nothing, and may raise if they cannot be read.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

MOST_CANDIDATES = 200  # sessions and runs, latest first
FILES, DIRECTORIES = "files", "directories"
"""Kinds of values that the shell itself completes."""


class Candidate(NamedTuple):
    """A possible value and what a shell shows beside it."""

    value: str
    description: str = ""


class CommandLine(NamedTuple):
    """What the command line contains before the word that is completed."""

    agent: str = ""
    """The agent that it names; empty if it names none."""
    config_dir: str = ""
    """The value of `--config-dir`."""


Source = Callable[[CommandLine], Iterable[Candidate]]


def _config_dir(line: CommandLine) -> Path:
    from agent_mux._util.paths import config_dir

    return Path(os.path.expanduser(line.config_dir)) if line.config_dir else config_dir()


def _agents(_line: CommandLine) -> Iterable[Candidate]:
    from agent_mux.sdk.registry import AdapterRegistry

    return map(Candidate, AdapterRegistry().names())


def _agents_and_amux(line: CommandLine) -> Iterable[Candidate]:
    return [*_agents(line), Candidate("amux", "the configuration of agent-mux")]


def _profiles(line: CommandLine) -> Iterable[Candidate]:
    from agent_mux.settings.profiles import profiles_of

    return map(Candidate, profiles_of(_config_dir(line)).names())


def _models(line: CommandLine) -> Iterable[Candidate]:
    """Return the models of the agent on the command line; without one, those of all agents."""
    from agent_mux.sdk.registry import AdapterRegistry

    adapters = AdapterRegistry()
    chosen = [adapters.get(line.agent)] if line.agent in adapters else list(adapters)
    return map(Candidate, sorted({model.model_id for adapter in chosen for model in adapter.models()}))


def _sessions(line: CommandLine) -> Iterable[Candidate]:
    return (Candidate(one.id, _session_text(one)) for one in _stored_sessions(line))


def _native_sessions(line: CommandLine) -> Iterable[Candidate]:
    return (Candidate(one.native_id, _session_text(one)) for one in _stored_sessions(line))


def _stored_sessions(line: CommandLine) -> Iterable[Any]:
    from agent_mux.cli.session_options import session_filter
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux.sessions.cache import SUMMARIES
    from agent_mux.sessions.client import Sessions

    agent = line.agent if line.agent in AdapterRegistry() else None
    sessions = Sessions(cache=_config_dir(line) / SUMMARIES, on_skipped=lambda _: None)
    return sessions.list(session_filter(agent=agent), limit=MOST_CANDIDATES)


def _session_text(summary: Any) -> str:
    from agent_mux.cli.terminal import local_minute

    return f"{local_minute(summary.updated_at)} {summary.title}"


def _session_names(line: CommandLine) -> Iterable[Candidate]:
    """Return the names of sessions in the current directory."""
    from agent_mux.sessions.names import NamedSessions

    names = NamedSessions(_config_dir(line)).list(directory=Path.cwd())
    return [Candidate(one.name, one.agent) for one in names if line.agent in {"", one.agent}]


def _runs(line: CommandLine) -> Iterable[Candidate]:
    journals = sorted((_config_dir(line) / "runs").glob("*.journal"), reverse=True)
    return (Candidate(path.stem) for path in journals[:MOST_CANDIDATES])


def _worktrees(line: CommandLine) -> Iterable[Candidate]:
    return (Candidate(path.name) for path in sorted((_config_dir(line) / "worktrees").glob("[!.]*")))


def _comparisons(line: CommandLine) -> Iterable[Candidate]:
    from agent_mux.compare.ledger import COMPARISONS

    return (Candidate(path.name) for path in sorted((_config_dir(line) / COMPARISONS).glob("[!.]*"), reverse=True))


SOURCES: Mapping[str, Source] = {
    "agents": _agents,
    "agents-and-amux": _agents_and_amux,
    "profiles": _profiles,
    "models": _models,
    "sessions": _sessions,
    "native-sessions": _native_sessions,
    "session-names": _session_names,
    "runs": _runs,
    "worktrees": _worktrees,
    "comparisons": _comparisons,
}
_BY_PARAMETER: Mapping[str, str] = {
    "agent": "agents",
    "agents": "agents",
    "words": "agents",
    "fallback": "agents",
    "judge": "agents",
    "candidates": "agents",
    "model": "models",
    "fallback_model": "models",
    "profile": "profiles",
    "session": "native-sessions",
    "fork": "native-sessions",
    "session_name": "session-names",
    "remove": "session-names",
    "origin": "sessions",
    "session_id": "sessions",
    "comparison": "comparisons",
    "comparisons": "comparisons",
    "cwd": DIRECTORIES,
    "add_dir": DIRECTORIES,
    "config_dir": DIRECTORIES,
    "project_dir": DIRECTORIES,
    "directory": DIRECTORIES,
    "root": DIRECTORIES,
    "to": DIRECTORIES,
    "hidden_checks": DIRECTORIES,
    "skill": DIRECTORIES,
    "attach": FILES,
    "file": FILES,
}
_BY_COMMAND: Mapping[tuple[str, str], str] = {
    ("config", "agent"): "agents-and-amux",
    ("doctor", "names"): "agents",
    ("profiles", "name"): "profiles",
    ("replay", "path"): "runs",
    ("runs", "run"): "runs",
    ("runs", "run_id"): "runs",
    ("sessions", "first"): "sessions",
    ("sessions", "second"): "sessions",
    ("worktrees", "run"): "worktrees",
    ("worktrees", "runs"): "worktrees",
}
"""Kinds of single parameters, by the first word of the command."""
_CHOICE = re.compile(r"[a-z0-9][a-z0-9_-]*")


def completion_of(words: tuple[str, ...], name: str, kind: str, value: str) -> str | list[str] | None:
    """Return what completes a parameter: a kind of values, or all its values; None if nothing does.

    Args:
        words: The words of the command.
        name: The name of the parameter in Python.
        kind: `option` or `argument`.
        value: What its help shows for the value, such as `PATH` or `none|worktree`.
    """
    choices = value.removesuffix("|...").split("|")
    if len(choices) > 1 and all(map(_CHOICE.fullmatch, choices)):
        return choices
    found = _BY_COMMAND.get((words[0] if words else "", name)) or _BY_PARAMETER.get(name)
    if found == "native-sessions" and kind == "argument":
        return "sessions"
    return found or (FILES if value in {"PATH", "FILE", "SOURCE"} else None)
