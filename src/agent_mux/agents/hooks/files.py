"""Where the files of hooks are. Separate from what reads them, because a run without hooks imports only this."""

import os
from pathlib import Path

from agent_mux._util.paths import project_dir

FILE_NAME = "hooks.json"


def has_hooks_file(directory: Path, own: Path, project: Path | None = None) -> bool:
    """Return whether there is a file of hooks for a working directory.

    Args:
        directory: The working directory.
        own: The global directory of agent-mux.
        project: The project's directory of agent-mux; None: search upwards from the working directory.
    """
    folders = (own, project_dir(directory, named=project))
    # lexists needs no file descriptor, unlike opening the file.
    return any(folder is not None and os.path.lexists(folder / FILE_NAME) for folder in folders)
