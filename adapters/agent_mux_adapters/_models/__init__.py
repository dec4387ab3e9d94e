"""Models that several agents offer, by who serves them: `<provider>.toml` beside this file."""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agent_mux.models import ModelCapabilities, Price

__all__ = ["models_of"]


def models_of(*providers: str) -> Callable[[], tuple[ModelCapabilities, ...]]:
    """What `Adapter.models` wants: all models of these providers, read when somebody asks."""
    return lambda: tuple(model for provider in providers for model in _read(provider))


@cache
def _read(provider: str) -> tuple[ModelCapabilities, ...]:
    listed = tomllib.loads((Path(__file__).parent / f"{provider}.toml").read_text("utf-8"))
    return tuple(_model(provider, name, fields) for name, fields in listed.items())


def _model(provider: str, name: str, fields: Mapping[str, Any]) -> ModelCapabilities:
    rest = {key: value for key, value in fields.items() if key not in {"alias", "price"}}
    alias = tuple(fields.get("alias", ()))
    return ModelCapabilities(model_id=name, provider=provider, alias=alias, price=_price(fields["price"]), **rest)


def _price(fields: Mapping[str, Any]) -> Price:
    beyond = fields.get("beyond")
    return Price(**{**fields, "beyond": None if beyond is None else _price(beyond)})
