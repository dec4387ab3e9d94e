"""Reading what is known of models: TOML files with a date, a table for each model."""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

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


# TODO Whose models an agent takes, and by which names: the `models.toml` of its adapter.
#
# ```toml
# [snapshot]
# as_of = 2026-11-22
# source = "where it is from"
#
# [takes]
# providers = ["anthropic", "openai"]   # all models that are known of these,
# without = ["gpt-4o"]                  # but for these (or `only` these),
# prefixed = true                       # as `provider/model`
#
# [alias]
# "claude-opus-5-5" = ["opus"]          # names that this agent alone has
#
# ["claude-opus-5.5"]                   # and models that are its own,
# like = "anthropic/claude-opus-5-5"    # perhaps as another, but for what follows
# context_window = 200000
# ```

_OF_THE_OTHER: Mapping[str, Any] = {
    "alias": (),
    "protocol": None,
    "deprecated": False,
    "deprecated_since": None,
    "retires_on": None,
    "successor": None,
}
"""What is not taken over from a model that another is like: its names, its end, how it is spoken to."""


def offered(adapter_file: str) -> Callable[[], tuple[ModelCapabilities, ...]]:
    """What `Adapter.models` wants: what the `models.toml` beside this file says, read when somebody asks."""
    return lambda: _read(Path(adapter_file).with_name("models.toml"))


@cache
def _read(path: Path) -> tuple[ModelCapabilities, ...]:
    listed = read_toml(path)
    snapshot, takes, alias = (listed.pop(name, {}) for name in (SNAPSHOT, "takes", "alias"))
    taken = tuple(_named(model, takes, alias) for model in _taken(takes))
    own = (_own(name, {"as_of": snapshot["as_of"], **fields}) for name, fields in listed.items())
    return (*own, *taken)


def _taken(takes: Mapping[str, Any]) -> list[ModelCapabilities]:
    models = [model for provider in takes.get("providers", ()) for model in read_provider(provider)]
    names = set(takes.get("only", (model.model_id for model in models))) - set(takes.get("without", ()))
    return [model for model in models if model.model_id in names]


def _named(model: ModelCapabilities, takes: Mapping[str, Any], alias: Mapping[str, list[str]]) -> ModelCapabilities:
    more = tuple(alias.get(model.model_id, ()))
    if not takes.get("prefixed", False):
        return structs.replace(model, alias=(*model.alias, *more)) if more else model

    def prefixed(name: str) -> str:
        return f"{model.provider}/{name}"

    return structs.replace(
        model,
        model_id=prefixed(model.model_id),
        alias=(*map(prefixed, model.alias), *more),
        successor=None if model.successor is None else prefixed(model.successor),
    )


def _own(name: str, fields: Mapping[str, Any]) -> ModelCapabilities:
    if "like" not in fields:
        return model_from(name, fields)
    provider, _, original = fields["like"].partition("/")
    like = next(model for model in read_provider(provider) if model.model_id == original)
    own = {key: value for key, value in fields.items() if key != "like"}
    return structs.replace(like, **{**_OF_THE_OTHER, **own, "model_id": name})
