"""Where the agents keep their files: the environment says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to look for what agents keep."""

    environ: Mapping[str, str]
    """`HOME` and the agent's own variables say where it keeps its files."""
    directory: Path | None = None
    """Instead: a copy of the agent's own directory, somewhere else."""

    project: Path | None = None
    """The directory that the agent works in; None: no project is meant."""

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or "~").expanduser()

    def home_of(self, variable: str, default: str) -> Path:
        """The agent's own directory: what its variable names, else `default`, which is below the home directory."""
        if self.directory is not None:
            return self.directory
        named = self.environ.get(variable)
        return Path(named) if named else self.home / default

    def project_file(self, *names: str) -> Path | None:
        """A file of the project; None where no project is meant."""
        return None if self.project is None else self.project.joinpath(*names)
