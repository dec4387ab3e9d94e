"""The profiles of a service: as `agent_mux.settings.profiles`, over HTTP."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from agent_mux.api.profiles import ProfileChanged, ProfileView, profile_from
from agent_mux.client.remote.asking import answer, path_of, refused
from agent_mux.client.remote.line import Line, decoded
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.profile import Profile, Scope
from agent_mux.settings.profiles import checked_name
from agent_mux.settings.writing import to_wire

_Views = list[ProfileView]
_THERE = "use `amux profiles` on the machine of the service"


class RemoteProfiles:
    """What `AgentMux.profiles` is there: of the directory that the service runs in, and the global ones.

    Blocking; every call asks the service, and raises what it says, too. Secrets of MCP servers are masked in what is
    told: a run at the service that names the profile has them.
    """

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line

    def list(self) -> "list[Profile]":
        """All of them, by name. Raises CONFIG_ERROR for one that cannot be used."""
        return [profile_from(view) for view in self._views()]

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(view.name for view in self._views()))

    def get(self, name: str, *, scope: Scope | None = None) -> Profile:
        """One profile. As `Profiles.get`; refused for one scope of a profile that is in both places."""
        found = profile_from(answer(self._line, ProfileView, "profiles", checked_name(name)))
        if scope is None or set(found.paths) == {scope}:
            return found
        if scope not in found.paths:
            raise AgentMuxError("PROFILE_NOT_FOUND", f"no profile is named {name!r} in the {scope} directory")
        raise refused("telling one of two places of a profile", "leave `scope` out: both come together")

    def set(self, name: str, fields: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """Make a profile. As `Profiles.set`, but for `replace`, which has to be said; returns its path there."""
        return self.set_keys(name, to_wire(fields), scope=scope, replace=replace)

    def set_keys(self, name: str, told: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """As `set`, with keys and values as they stand in the file."""
        path = path_of("profiles", checked_name(name), scope=scope)
        if not replace:
            raise refused("changing a part of a profile", "say all of it, with `replace=True`")
        return self._changed("PUT", path, dict(told))

    def delete(self, name: str, *, scope: Scope | None = None) -> Path:
        """Remove a profile from one place. As `Profiles.delete`."""
        return self._changed("DELETE", path_of("profiles", checked_name(name), scope=scope))

    def apply(self, name: str, options: RunOptions) -> NoReturn:  # noqa: ARG002  # here and below: as there
        """Refused: the secrets of a profile stay with the service."""
        raise refused("applying a profile here", "name it in the options of the run: `profile=`")

    def make_default(self, name: str | None, *, scope: Scope = "project") -> NoReturn:  # noqa: ARG002
        """Refused: it is in a file of that machine."""
        raise refused("choosing the default profile", _THERE)

    def named_by(self, name: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `make_default`."""
        raise refused("telling which files name a profile", _THERE)

    @property
    def has_project(self) -> NoReturn:
        """Refused: the service does not tell."""
        raise refused("telling whether it is in a project", _THERE)

    def _views(self) -> _Views:
        found: _Views = answer(self._line, _Views, "profiles")
        return found

    def _changed(self, method: str, path: str, told: Any = None) -> Path:
        changed: ProfileChanged = decoded(self._line.ask_blocking(method, path, told), ProfileChanged)
        return Path(changed.path)
