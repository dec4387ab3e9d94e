"""`codex debug models`: the catalog that Codex keeps, as it asked for it last, or as it came with it."""

from collections.abc import Mapping
from typing import Any

from agent_mux.models import ModelCapabilities, ModelListing
from agent_mux_adapters._dialects.tolerant import printed_objects, rows, text, token_limit

PROVIDER = "openai"


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """The models that it offers, the hidden ones left out. Raises `ValueError` where there is no list of models."""
    listed = printed_objects("models", printed)
    return tuple(_model(said) for said in listed if text(said.get("slug")) and said.get("visibility") == "list")


def _model(said: Mapping[str, Any]) -> ModelCapabilities:
    levels = tuple(text(level.get("effort")) for level in rows(said.get("supported_reasoning_levels")))
    takes = said.get("input_modalities")
    return ModelCapabilities(
        model_id=text(said.get("slug")),
        provider=PROVIDER,
        display_name=text(said.get("display_name")),
        context_window=token_limit(said.get("context_window")),
        thinking=bool(levels),
        thinking_efforts=tuple(filter(None, levels)),
        image_input=isinstance(takes, list) and "image" in takes,
    )


# With a key it takes whatever the API of its provider serves.
LISTING = ModelListing(argv=("debug", "models"), parse=parse, is_complete=False)
