"""Models of `codex debug models`: the catalog that Codex fetched last, or the one that it ships."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.models import ModelCapabilities, ModelListing
from agent_mux_adapters._dialects.tolerant import printed_objects, rows, text, token_limit

PROVIDER = "openai"


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse the listed models, without hidden ones. Raise `ValueError` when the output has no list of models."""
    listed = printed_objects("models", printed)
    return tuple(_model(entry) for entry in listed if text(entry.get("slug")) and entry.get("visibility") == "list")


def _model(entry: Mapping[str, Any]) -> ModelCapabilities:
    levels = tuple(text(level.get("effort")) for level in rows(entry.get("supported_reasoning_levels")))
    inputs = entry.get("input_modalities")
    return ModelCapabilities(
        model_id=text(entry.get("slug")),
        provider=PROVIDER,
        display_name=text(entry.get("display_name")),
        context_window=token_limit(entry.get("context_window")),
        thinking=bool(levels),
        thinking_efforts=tuple(filter(None, levels)),
        image_input=isinstance(inputs, list) and "image" in inputs,
    )


# With an API key, Codex accepts any model that the provider serves, not only the listed ones.
LISTING = ModelListing(argv=("debug", "models"), parse=parse, is_complete=False)
