"""What a trial has besides its workspace: a temporary directory, ports, a configuration directory.

`HOME` stays that of the user. Everything here is removed at the end of the trial.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux._util.files import make_directory
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import ConfigDirectory
from agent_mux.worktrees.removal import remove_directory
from agent_mux.worktrees.surroundings import port_block, port_variables, temporary_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of one trial."""

    environ: Mapping[str, str]
    """Variables for the agent."""
    directory: Path
    """Directory with everything that is removed at the end."""
    ports: range


@contextlib.contextmanager
def trial_surroundings(
    config: ConfigDirectory | None, place: AgentPaths, parent: Path | None = None
) -> Iterator[Surroundings]:
    """Create the surroundings of a trial and remove them at the end. Blocking.

    Args:
        config: The configuration directory that the agent declares; None: it has none that can be moved.
        place: Home directory and environment of the agent.
        parent: Existing directory in which they are created; default: that for temporary files.

    Raises:
        AgentMuxError: They cannot be created, or no ports are free.
    """
    with contextlib.ExitStack() as stack:
        ports = stack.enter_context(port_block())
        try:
            directory = Path(tempfile.mkdtemp(prefix="trial-", dir=parent))
        except OSError as error:
            why = f"no temporary directory can be created: {error.strerror or error}; free disk space, or set TMPDIR"
            raise AgentMuxError("SPAWN_ERROR", why) from error
        stack.callback(remove_directory, directory)
        environ = {**temporary_variables(directory), **port_variables(ports)}
        source = None if config is None else config.path(place)
        if config is not None and source is not None:
            environ[config.variable] = str(_create_config(config, source, directory / "config"))
        yield Surroundings(environ=environ, directory=directory, ports=ports)


def _create_config(config: ConfigDirectory, source: Path, target: Path) -> Path:
    """Create a configuration directory: credentials as links to the user's files, settings as copies."""
    target.mkdir(mode=0o700)
    for name in config.credentials:
        if (source / name).exists():
            make_directory((target / name).parent)
            (target / name).symlink_to(source / name)
    for name in config.settings:
        if (source / name).is_file():
            make_directory((target / name).parent)
            shutil.copyfile(source / name, target / name)
            (target / name).chmod(0o600)
    return target
