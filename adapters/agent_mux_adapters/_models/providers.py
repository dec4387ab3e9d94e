"""Reading what is known of models: TOML files with a date, a table for each model."""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agent_mux.models import ModelCapabilities, Price

SNAPSHOT = "snapshot"
"""The table that says when the rest was found to be so, and where."""
_LISTS = ("alias", "thinking_efforts")


def models_of(*providers: str) -> Callable[[], tuple[ModelCapabilities, ...]]:
    """What `Adapter.models` wants: all models of these providers, read when somebody asks."""
    return lambda: tuple(model for provider in providers for model in read_provider(provider))


@cache
def read_provider(provider: str) -> tuple[ModelCapabilities, ...]:
    """All models of a provider, in the order of its file."""
    listed = read_toml(Path(__file__).parent / f"{provider}.toml")
    snapshot = listed.pop(SNAPSHOT)
    every = {"provider": provider, "protocol": snapshot["protocol"], "as_of": snapshot["as_of"]}
    return tuple(model_from(name, {**every, **fields}) for name, fields in listed.items())


def read_toml(path: Path) -> dict[str, Any]:
    """A file of ours: it is there, and it is sound."""
    return tomllib.loads(path.read_text("utf-8"))


def model_from(name: str, fields: Mapping[str, Any]) -> ModelCapabilities:
    """A model from its table."""
    lists = {key: tuple(fields[key]) for key in _LISTS if key in fields}
    price = fields.get("price")
    return ModelCapabilities(
        model_id=name, **{**fields, **lists, "price": None if price is None else price_from(price)}
    )


def price_from(fields: Mapping[str, Any]) -> Price:
    """A price from its table."""
    beyond = fields.get("beyond")
    return Price(**{**fields, "beyond": None if beyond is None else price_from(beyond)})
