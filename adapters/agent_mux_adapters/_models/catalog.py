"""The model catalog: TOML files of providers, and the selection in an adapter's `models.toml`.

A provider file has a date and one table per model. The `models.toml` of an adapter selects from them:

```toml
[snapshot]
as_of = 2026-11-22
source = "where the data is from"

[takes]
providers = ["anthropic", "openai"]   # all known models of these providers,
without = ["gpt-4o"]                  # except these (or `only` these),
prefixed = true                       # written as `provider/model`

[alias]
"claude-opus-5-5" = ["opus"]          # additional names that only this agent accepts

["claude-opus-5.5"]                   # and models of the agent's own,
like = "anthropic/claude-opus-5-5"    # optionally a copy of another one with these changes
context_window = 200000
```
"""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from agent_mux.sdk.models import ModelCapabilities, Price

SNAPSHOT = "snapshot"
"""The table that states when and where the data was collected."""
_LISTS = ("alias", "thinking_efforts")


def models_of(*providers: str) -> Callable[[], tuple[ModelCapabilities, ...]]:
    """Return a function for `Adapter.models` that loads all models of these providers when it is called."""
    return lambda: tuple(model for provider in providers for model in read_provider(provider))


@cache
def read_provider(provider: str) -> tuple[ModelCapabilities, ...]:
    """Return all models of a provider, in the order of its file."""
    tables = read_toml(Path(__file__).parent / f"{provider}.toml")
    snapshot = tables.pop(SNAPSHOT)
    every = {"provider": provider, "protocol": snapshot["protocol"], "as_of": snapshot["as_of"]}
    return tuple(model_from(name, {**every, **fields}) for name, fields in tables.items())


def read_toml(path: Path) -> dict[str, Any]:
    """Load a TOML file of this package, which must exist and be valid."""
    return tomllib.loads(path.read_text("utf-8"))


def model_from(name: str, fields: Mapping[str, Any]) -> ModelCapabilities:
    """Build a model from its table."""
    lists = {key: tuple(fields[key]) for key in _LISTS if key in fields}
    price = fields.get("price")
    return ModelCapabilities(
        model_id=name, **{**fields, **lists, "price": None if price is None else price_from(price)}
    )


def price_from(fields: Mapping[str, Any]) -> Price:
    """Build a price from its table, including the price beyond a context size."""
    beyond = fields.get("beyond")
    return Price(**{**fields, "beyond": None if beyond is None else price_from(beyond)})


_NOT_INHERITED: Mapping[str, Any] = {
    "alias": (),
    "protocol": None,
    "deprecated": False,
    "deprecated_since": None,
    "retires_on": None,
    "successor": None,
}
"""Fields that a model does not inherit from the one it is `like`: its names, its lifecycle and its protocol."""


def offered(adapter_file: str) -> Callable[[], tuple[ModelCapabilities, ...]]:
    """Return a function for `Adapter.models` that loads the `models.toml` beside the adapter when it is called."""
    return lambda: _load(Path(adapter_file).with_name("models.toml"))


@cache
def _load(path: Path) -> tuple[ModelCapabilities, ...]:
    tables = read_toml(path)
    snapshot, takes, alias = (tables.pop(name, {}) for name in (SNAPSHOT, "takes", "alias"))
    selected = tuple(_with_names(model, takes, alias) for model in _selected(takes))
    own = (_own_model(name, {"as_of": snapshot["as_of"], **fields}) for name, fields in tables.items())
    return (*own, *selected)


def _selected(takes: Mapping[str, Any]) -> list[ModelCapabilities]:
    models = [model for provider in takes.get("providers", ()) for model in read_provider(provider)]
    names = set(takes.get("only", (model.model_id for model in models))) - set(takes.get("without", ()))
    return [model for model in models if model.model_id in names]


def _with_names(
    model: ModelCapabilities, takes: Mapping[str, Any], alias: Mapping[str, list[str]]
) -> ModelCapabilities:
    extra_names = tuple(alias.get(model.model_id, ()))
    if not takes.get("prefixed", False):
        return structs.replace(model, alias=(*model.alias, *extra_names)) if extra_names else model

    def prefixed(name: str) -> str:
        return f"{model.provider}/{name}"

    return structs.replace(
        model,
        model_id=prefixed(model.model_id),
        alias=(*map(prefixed, model.alias), *extra_names),
        successor=None if model.successor is None else prefixed(model.successor),
    )


def _own_model(name: str, fields: Mapping[str, Any]) -> ModelCapabilities:
    if "like" not in fields:
        return model_from(name, fields)
    provider, _, original = fields["like"].partition("/")
    like = next(model for model in read_provider(provider) if model.model_id == original)
    own = {key: value for key, value in fields.items() if key != "like"}
    return structs.replace(like, **{**_NOT_INHERITED, **own, "model_id": name})
