"""`openclaw models list --all --refresh --json`: its catalog, and of what there is a key for.

Without `--refresh` it answers from a cache that it fills when it likes to.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.models import ModelCapabilities, ModelListing
from agent_mux_adapters._dialects.tolerant import printed_objects, text, token_limit


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """The models that can be used. Raises `ValueError` where there is no list of models."""
    listed = printed_objects("models", printed)
    return tuple(_model(said) for said in listed if text(said.get("key")) and said.get("available") is not False)


def _model(said: Mapping[str, Any]) -> ModelCapabilities:
    name = text(said.get("key"))
    return ModelCapabilities(
        model_id=name,
        provider=name.partition("/")[0],
        display_name=text(said.get("name")),
        context_window=token_limit(said.get("contextWindow")),
        image_input="image" in text(said.get("input")).split("+"),
    )


LISTING = ModelListing(argv=("models", "list", "--all", "--refresh", "--json"), parse=parse)
