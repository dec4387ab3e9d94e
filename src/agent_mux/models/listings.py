"""The models that agents listed when they were last asked: one file per agent in `~/.agent-mux/cache/models`."""

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
ROUNDING_TOLERANCE = 0.05  # of a size: 1.0M stands for 1,048,576
_SIZES = ("context_window", "max_output_tokens")


class CachedListing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The models that an agent listed."""

    agent: str
    at: datetime
    """When the agent was asked."""
    models: tuple[ModelCapabilities, ...]
    """The models with only the properties that the agent listed."""


class ListingCache:
    """The cached listings on disk. A damaged file counts as missing and is replaced by the next listing."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, agent: str) -> Path:
        """Return the path of an agent's listing."""
        return self._directory / FOLDER / f"{quote(agent, safe='')}.json"

    def read(self, agent: str) -> CachedListing | None:
        """Return the last listing of an agent, or None. Raises CONFIG_ERROR if the file cannot be read."""
        path = self.path(agent)
        text = read_text(path)
        if text is None:
            return None
        try:
            return msgspec.json.decode(text, type=CachedListing)
        except msgspec.DecodeError as error:
            logging.getLogger(LOGGER).warning("%s is damaged and skipped: %s", path, error)
            return None

    def write(self, listing: CachedListing) -> None:
        """Store a listing in place of the previous one. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
        path = self.path(listing.agent)
        with locked(path, locks=self._directory / "locks"):
            write_text(path, msgspec.json.encode(listing).decode())


def merge_listing(listing: CachedListing, known: tuple[ModelCapabilities, ...]) -> tuple[ModelCapabilities, ...]:
    """Return the listed models, with properties that the agent does not list taken from the known models."""
    return tuple(_merge_model(model, find_model(known, model.model_id), listing) for model in listing.models)


def _merge_model(
    listed: ModelCapabilities, known: ModelCapabilities | None, listing: CachedListing
) -> ModelCapabilities:
    day = listing.at.date()
    if known is None:
        return structs.replace(listed, as_of=day)
    fields = {name: getattr(listed, name) or getattr(known, name) for name in listed.__struct_fields__}
    sizes = {name: _merge_size(getattr(listed, name), getattr(known, name)) for name in _SIZES}
    # A dated version matches the known model but does not have its aliases.
    alias = known.alias if listed.model_id == known.model_id else ()
    price = _merge_price(listed.price, known.price)
    return structs.replace(listed, **{**fields, **sizes, "alias": alias, "price": price, "as_of": day})


def _merge_size(listed: int | None, known: int | None) -> int | None:
    """Return the listed size, or the known one if the listed one is equal to it but for rounding."""
    if listed is None or known is None:
        return listed or known
    return known if abs(listed - known) <= ROUNDING_TOLERANCE * known else listed


def _merge_price(listed: Price | None, known: Price | None) -> Price | None:
    """Return the known price if both agree on short calls, else the listed one.

    Agents omit the prices of long calls, or take them from an older list.
    """
    if listed is None or known is None:
        return listed or known
    agree = all(getattr(listed, name) == getattr(known, name) for name in ("input", "output"))
    return known if agree else listed
