"""`opencode models --verbose`: a line with the name of a model, then what is known of it as JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from agent_mux.models import ModelCapabilities, ModelListing, Price
from agent_mux_adapters._dialects.tolerant import listed_price, mapping, rows, text, token_limit

_NAME = re.compile(r"^([^\s/{}\"]+)/([^\s{}\"]+)$", re.MULTILINE)


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """The models that can call tools. Raises `ValueError` where something was printed, and no name among it."""
    named = [(name, _behind(printed, name.end())) for name in _NAME.finditer(printed)]
    if printed.strip() and not named:
        raise ValueError("no line is the name of a model")
    return tuple(_model(name, said) for name, said in named if _calls_tools(said))


def _calls_tools(said: Mapping[str, Any]) -> bool:
    """It lists those that make images, sounds or vectors, too."""
    return mapping(said.get("capabilities")).get("toolcall") is not False


def _behind(printed: str, end: int) -> Mapping[str, Any]:
    rest = printed[end : end + 1]
    if rest != "\n" or printed[end + 1 : end + 2] != "{":
        return {}  # without `--verbose` there are names only
    try:
        found, _ = json.JSONDecoder().raw_decode(printed, end + 1)
    except (ValueError, RecursionError):
        return {}
    return mapping(found)


def _model(name: re.Match[str], said: Mapping[str, Any]) -> ModelCapabilities:
    limit, can = mapping(said.get("limit")), mapping(said.get("capabilities"))
    takes = mapping(can.get("input"))
    return ModelCapabilities(
        model_id=name[0],
        provider=name[1],
        display_name=text(said.get("name")),
        context_window=token_limit(limit.get("context")),
        max_output_tokens=token_limit(limit.get("output")),
        price=_price(mapping(said.get("cost"))),
        thinking=can.get("reasoning") is True,
        thinking_efforts=tuple(level for level in mapping(said.get("variants")) if level != "none"),
        image_input=takes.get("image") is True,
        pdf_input=takes.get("pdf") is True,
        deprecated=said.get("status") == "deprecated",
    )


def _price(cost: Mapping[str, Any]) -> Price | None:
    short = _of_cost(cost)
    tier = next((tier for tier in rows(cost.get("tiers")) if _threshold(tier) is not None), None)
    beyond = None if tier is None else _of_cost(tier)
    if short is None or tier is None or beyond is None:
        return short
    return structs.replace(short, threshold=_threshold(tier), beyond=beyond)


def _of_cost(cost: Mapping[str, Any]) -> Price | None:
    cache = mapping(cost.get("cache"))
    return listed_price(cost, read=cache.get("read"), written=cache.get("write"))


def _threshold(tier: Mapping[str, Any]) -> int | None:
    kind = mapping(tier.get("tier"))
    return token_limit(kind.get("size")) if kind.get("type") == "context" else None


LISTING = ModelListing(argv=("models", "--verbose"), parse=parse)
