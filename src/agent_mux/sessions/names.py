"""Named sessions: which session of an agent continues under a name in a directory.

The names are kept on our side, in one private file of the global directory. A name belongs to a directory and an agent,
so that the same name elsewhere is another session. See docs/spec/run-api.md, section 2.1.
"""

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.errors import AgentMuxError
from agent_mux.sessions.reservations import LOCKS, reserve

FILE = "named-sessions.json"
MAX_NAMES = 5000  # the names that were used longest ago are dropped


class NamedSession(msgspec.Struct, frozen=True, rename="camel"):
    """A name of a session."""

    name: str
    """The name, as in the option `session_name`."""
    agent: str
    """Registered name of the agent."""
    directory: Annotated[str, Meta(description="The working directory in which the name applies.")]
    session_id: Annotated[str, Meta(description="The agent's own id of the session.")]
    updated_at: Annotated[int, Meta(description="Milliseconds since the epoch.")]

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the entry: a name is unique per agent and directory."""
        return self.name, self.agent, self.directory


class _File(msgspec.Struct):
    v: int = 1
    names: list[NamedSession] = []


class NamedSessions:
    """The named sessions of this user. Blocking. Every method may raise CONFIG_ERROR for an unusable file."""

    def __init__(self, config_dir: Path) -> None:
        """Use the file in this global directory."""
        self._path = config_dir / FILE
        self._locks = config_dir / LOCKS

    def list(self, *, agent: str | None = None, directory: Path | None = None) -> tuple[NamedSession, ...]:
        """Return the names, the latest first; `agent` is a registered name."""
        place = None if directory is None else _place(directory)
        found = [
            one
            for one in self._read()
            if (agent is None or one.agent == agent) and (place is None or one.directory == place)
        ]
        return tuple(sorted(found, key=lambda one: -one.updated_at))

    def find(self, name: str, agent: str, directory: Path) -> str | None:
        """Return the agent's own id of the session that a name continues; None if the name is new."""
        key = (name, agent, _place(directory))
        return next((one.session_id for one in self._read() if one.key == key), None)

    def store(self, name: str, agent: str, directory: Path, session_id: str) -> None:
        """Let a name continue this session from now on."""
        one = NamedSession(name, agent, _place(directory), session_id, int(time.time() * 1000))
        with locked(self._path, locks=self._locks):
            others = [known for known in self._read() if known.key != one.key]
            self._write([one, *others])

    def move(self, agent: str, old: str, new: str) -> None:
        """Let the names of one session of an agent continue another one."""
        if not any((one.agent, one.session_id) == (agent, old) for one in self._read()):
            return
        with locked(self._path, locks=self._locks):
            self._write(
                msgspec.structs.replace(one, session_id=new) if (one.agent, one.session_id) == (agent, old) else one
                for one in self._read()
            )

    def forget(self, name: str, *, agent: str | None = None, directory: Path | None = None) -> tuple[NamedSession, ...]:
        """Remove a name, so that its next run starts a session; return what was removed. The sessions are kept.

        Raises SESSION_NOT_FOUND if there is no such name.
        """
        with locked(self._path, locks=self._locks):
            gone = [one for one in self.list(agent=agent, directory=directory) if one.name == name]
            if not gone:
                message = f"no session is named {name!r} here; `amux sessions names` lists the names"
                raise AgentMuxError("SESSION_NOT_FOUND", message)
            self._write(one for one in self._read() if one not in gone)
        return tuple(gone)

    def reserve(self, name: str, agent: str, directory: Path, run_id: str) -> Callable[[], None]:
        """Reserve a name for one run, until the returned function is called or this process ends.

        Two runs of one session at a time would lose a turn of the conversation, or fail in the agent.

        Raises:
            AgentMuxError: INVALID_STATE_TRANSITION while another run uses the name, CONFIG_ERROR.
        """
        key = (name, agent, _place(directory))
        return reserve(self._path.parent, key, run_id, partial(_used, name))

    def _read(self) -> tuple[NamedSession, ...]:
        text = read_text(self._path)
        if text is None:
            return ()
        try:
            return tuple(msgspec.json.decode(text, type=_File).names)
        except (msgspec.DecodeError, RecursionError) as error:
            message = f"{self._path} cannot be used: {error}; correct it, or remove it to forget all names"
            raise AgentMuxError("CONFIG_ERROR", message) from error

    def _write(self, names: Iterable[NamedSession]) -> None:
        latest = sorted(names, key=lambda one: -one.updated_at)[:MAX_NAMES]
        write_text(self._path, msgspec.json.format(msgspec.json.encode(_File(names=latest))).decode() + "\n")


def _place(directory: Path) -> str:
    return os.path.realpath(directory)


def _used(name: str, run: str) -> str:
    if not run:  # it has reserved the name and not yet written its id
        return f"session {name!r} is used by a run that starts now; wait for its end, or choose another name"
    next_step = f"wait for its end, end it with `amux runs abort {run}`, or choose another name"
    return f"session {name!r} is used by run {run}; {next_step}"
