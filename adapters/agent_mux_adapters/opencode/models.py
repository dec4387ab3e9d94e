"""`opencode models --verbose`: for each model a line with its name, then its description as JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price
from agent_mux_adapters._dialects.tolerant import listed_price, mapping, rows, text, token_limit

_NAME = re.compile(r"^([^\s/{}\"]+)/([^\s{}\"]+)$", re.MULTILINE)


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse the models that can call tools. Raises `ValueError` if the output contains no model's name."""
    named = [(name, _fields_after(printed, name.end())) for name in _NAME.finditer(printed)]
    if printed.strip() and not named:
        raise ValueError("the output contains no model name")
    return tuple(_model(name, fields) for name, fields in named if _calls_tools(fields))


def _calls_tools(fields: Mapping[str, Any]) -> bool:
    """Return whether a model can call tools; the list also contains models for images, audio and embeddings."""
    return mapping(fields.get("capabilities")).get("toolcall") is not False


def _fields_after(printed: str, end: int) -> Mapping[str, Any]:
    rest = printed[end : end + 1]
    if rest != "\n" or printed[end + 1 : end + 2] != "{":
        return {}  # the output without `--verbose` has names only
    try:
        found, _ = json.JSONDecoder().raw_decode(printed, end + 1)
    except (ValueError, RecursionError):
        return {}
    return mapping(found)


def _model(name: re.Match[str], fields: Mapping[str, Any]) -> ModelCapabilities:
    limit, capabilities = mapping(fields.get("limit")), mapping(fields.get("capabilities"))
    inputs = mapping(capabilities.get("input"))
    return ModelCapabilities(
        model_id=name[0],
        provider=name[1],
        display_name=text(fields.get("name")),
        context_window=token_limit(limit.get("context")),
        max_output_tokens=token_limit(limit.get("output")),
        price=_price(mapping(fields.get("cost"))),
        thinking=capabilities.get("reasoning") is True,
        thinking_efforts=tuple(level for level in mapping(fields.get("variants")) if level != "none"),
        image_input=inputs.get("image") is True,
        pdf_input=inputs.get("pdf") is True,
        deprecated=fields.get("status") == "deprecated",
    )


def _price(cost: Mapping[str, Any]) -> Price | None:
    base = _base_price(cost)
    tier = next((tier for tier in rows(cost.get("tiers")) if _threshold(tier) is not None), None)
    beyond = None if tier is None else _base_price(tier)
    if base is None or tier is None or beyond is None:
        return base
    return structs.replace(base, threshold=_threshold(tier), beyond=beyond)


def _base_price(cost: Mapping[str, Any]) -> Price | None:
    cache = mapping(cost.get("cache"))
    return listed_price(cost, read=cache.get("read"), written=cache.get("write"))


def _threshold(tier: Mapping[str, Any]) -> int | None:
    kind = mapping(tier.get("tier"))
    return token_limit(kind.get("size")) if kind.get("type") == "context" else None


LISTING = ModelListing(argv=("models", "--verbose"), parse=parse)
