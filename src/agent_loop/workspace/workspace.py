"""A directory that paths cannot leave."""

from pathlib import Path


class Workspace:
    """The directory `root` and what is below it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
