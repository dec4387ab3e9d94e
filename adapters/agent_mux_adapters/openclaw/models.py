"""Models that OpenClaw lists: `openclaw models list --all --refresh --json`, its catalog with the available keys.

Without `--refresh` it answers from a cache that it refreshes at times of its own.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.models import ModelCapabilities, ModelListing
from agent_mux_adapters._dialects.tolerant import printed_objects, text, token_limit


def parse_models(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse the models that can be used. Raise `ValueError` when the output has no list of models."""
    entries = printed_objects("models", printed)
    return tuple(_model(entry) for entry in entries if text(entry.get("key")) and entry.get("available") is not False)


def _model(entry: Mapping[str, Any]) -> ModelCapabilities:
    name = text(entry.get("key"))
    return ModelCapabilities(
        model_id=name,
        provider=name.partition("/")[0],
        display_name=text(entry.get("name")),
        context_window=token_limit(entry.get("contextWindow")),
        image_input="image" in text(entry.get("input")).split("+"),
    )


LISTING = ModelListing(argv=("models", "list", "--all", "--refresh", "--json"), parse=parse_models)
