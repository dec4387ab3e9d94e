"""Whose models an agent takes, and by which names: the `models.toml` of its adapter.

```toml
[snapshot]
as_of = 2026-11-22
source = "where it is from"

[takes]
providers = ["anthropic", "openai"]   # all models that are known of these,
without = ["gpt-4o"]                  # but for these (or `only` these),
prefixed = true                       # as `provider/model`

[alias]
"claude-opus-5-5" = ["opus"]          # names that this agent alone has

["claude-opus-5.5"]                   # and models that are its own,
like = "anthropic/claude-opus-5-5"    # perhaps as another, but for what follows
context_window = 200000
```
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from agent_mux.models import ModelCapabilities
from agent_mux_adapters._models.providers import SNAPSHOT, model_from, read_provider, read_toml

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
