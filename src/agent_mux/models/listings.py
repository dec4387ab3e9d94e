"""What agents said of their models when they were last asked: one file each, in `~/.agent-mux/cache/models`.

What an agent said of its models, filled up with what was known of them before.
"""

import logging
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import structs

from agent_mux._util.files import locked, read_text, write_text
from agent_mux._util.logs import LOGGER
from agent_mux.models.matching import find_model
from agent_mux.sdk.models import ModelCapabilities, Price

FOLDER = Path("cache") / "models"


class CachedListing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of an agent."""

    agent: str
    at: datetime
    """When it was asked."""
    models: tuple[ModelCapabilities, ...]
    """As it said, nothing added."""


class ListingCache:
    """The answers, on disk. A file that is damaged is as good as none: it is written again with the next answer."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, agent: str) -> Path:
        """Where the answer of an agent is kept."""
        return self._directory / FOLDER / f"{quote(agent, safe='')}.json"

    def read(self, agent: str) -> CachedListing | None:
        """The last answer of an agent; None where there is none. Raises CONFIG_ERROR where it may not be read."""
        path = self.path(agent)
        said = read_text(path)
        if said is None:
            return None
        try:
            return msgspec.json.decode(said, type=CachedListing)
        except msgspec.DecodeError as error:
            logging.getLogger(LOGGER).warning("%s is damaged and passed over: %s", path, error)
            return None

    def write(self, listed: CachedListing) -> None:
        """Keep an answer instead of the one before. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
        path = self.path(listed.agent)
        with locked(path, locks=self._directory / "locks"):
            write_text(path, msgspec.json.encode(listed).decode())


ROUNDED = 0.05  # of a size: 1.0M stands for 1,048,576
_SIZES = ("context_window", "max_output_tokens")


def merge_listing(listed: CachedListing, known: tuple[ModelCapabilities, ...]) -> tuple[ModelCapabilities, ...]:
    """The models that the agent listed. What it says counts; what it does not say is as it was known."""
    return tuple(_filled(said, find_model(known, said.model_id), listed) for said in listed.models)


def _filled(said: ModelCapabilities, known: ModelCapabilities | None, listed: CachedListing) -> ModelCapabilities:
    today = listed.at.date()
    if known is None:
        return structs.replace(said, as_of=today)
    fields = {name: getattr(said, name) or getattr(known, name) for name in said.__struct_fields__}
    sizes = {name: _size(getattr(said, name), getattr(known, name)) for name in _SIZES}
    # A version with a date of its own has not the aliases of the model.
    alias = known.alias if said.model_id == known.model_id else ()
    return structs.replace(
        said, **{**fields, **sizes, "alias": alias, "price": _price(said.price, known.price), "as_of": today}
    )


def _size(said: int | None, known: int | None) -> int | None:
    """The exact one, where the other is the same but for rounding."""
    if said is None or known is None:
        return said or known
    return known if abs(said - known) <= ROUNDED * known else said


def _price(said: Price | None, known: Price | None) -> Price | None:
    """Ours where they agree on short calls: agents leave out what long ones cost, or have it from an older list."""
    if said is None or known is None:
        return said or known
    agree = all(getattr(said, name) == getattr(known, name) for name in ("input", "output"))
    return known if agree else said
