"""What agents said of their models when they were last asked: one file each, in `~/.agent-mux/cache/models`."""

import logging
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import msgspec

from agent_mux._util.files import locked, read_text, write_text
from agent_mux._util.logs import LOGGER
from agent_mux.sdk.models import ModelCapabilities

FOLDER = Path("cache") / "models"


class Listed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of an agent."""

    agent: str
    at: datetime
    """When it was asked."""
    models: tuple[ModelCapabilities, ...]
    """As it said, nothing added."""


class ListedModels:
    """The answers, on disk. A file that is damaged is as good as none: it is written again with the next answer."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, agent: str) -> Path:
        """Where the answer of an agent is kept."""
        return self._directory / FOLDER / f"{quote(agent, safe='')}.json"

    def read(self, agent: str) -> Listed | None:
        """The last answer of an agent; None where there is none. Raises CONFIG_ERROR where it may not be read."""
        path = self.path(agent)
        said = read_text(path)
        if said is None:
            return None
        try:
            return msgspec.json.decode(said, type=Listed)
        except msgspec.DecodeError as error:
            logging.getLogger(LOGGER).warning("%s is damaged and passed over: %s", path, error)
            return None

    def write(self, listed: Listed) -> None:
        """Keep an answer instead of the one before. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
        path = self.path(listed.agent)
        with locked(path, locks=self._directory / "locks"):
            write_text(path, msgspec.json.encode(listed).decode())
