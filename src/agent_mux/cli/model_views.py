"""Models for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agent_mux.cli.terminal import one_line

if TYPE_CHECKING:
    from agent_mux.models import ModelCapabilities, Price

_WORDS = {
    "deprecated": "deprecated",
    "thinking": "thinking",
    "image_input": "images",
    "pdf_input": "pdf",
    "structured_output": "schema",
}
_LONGEST = 300  # characters of a value
_UNITS = ((1_000_000, "M"), (1_000, "k"))


def row(model: "ModelCapabilities", agent: str) -> dict[str, Any]:
    """For a table."""
    price = model.price
    return {
        "agent": agent,
        "model": one_line(model.model_id, _LONGEST),
        "provider": one_line(model.provider, _LONGEST),
        "context": size(model.context_window),
        "output": size(model.max_output_tokens),
        "$ in": "" if price is None else f"{price.input:g}",
        "$ out": "" if price is None else f"{price.output:g}",
        "$ cached": "" if price is None or price.cached_input is None else f"{price.cached_input:g}",
        "can": ", ".join(name for field, name in _WORDS.items() if getattr(model, field)),
    }


def lines(model: "ModelCapabilities") -> Iterator[str]:
    """All that is known of it, a line each."""
    known = dict(_facts(model))
    width = max(map(len, known))
    for name, value in known.items():
        yield f"{name:<{width}}  {one_line(value, _LONGEST)}\n"


def size(tokens: int | None) -> str:
    """A number of tokens, short: 200k, 1.05M."""
    if tokens is None:
        return ""
    return next((f"{tokens / unit:.3g}{letter}" for unit, letter in _UNITS if tokens >= unit), str(tokens))


def _facts(model: "ModelCapabilities") -> Iterator[tuple[str, str]]:
    told = {
        "model": model.model_id,
        "name": model.display_name,
        "also called": ", ".join(model.alias),
        "provider": model.provider,
        "protocol": model.protocol,
        "context window": model.context_window,
        "most output": model.max_output_tokens,
        "most thinking": model.max_thinking_tokens,
        "can": ", ".join(name for field, name in _WORDS.items() if getattr(model, field)),
        "thinking efforts": ", ".join(model.thinking_efforts),
        "price": None if model.price is None else _sentence(model.price),
        "deprecated since": model.deprecated_since,
        "ends on": model.retires_on,
        "instead": model.successor,
        "as of": model.as_of,
    }
    yield from ((name, str(value)) for name, value in told.items() if value)


def _sentence(price: "Price") -> str:
    parts = [f"${price.input:g} in", f"${price.output:g} out"]
    parts += [] if price.cached_input is None else [f"${price.cached_input:g} cached"]
    parts += [] if price.cache_creation is None else [f"${price.cache_creation:g} into the cache"]
    short = f"{', '.join(parts)} for a million tokens"
    if price.beyond is None or price.threshold is None:
        return short
    long = f"${price.beyond.input:g} in, ${price.beyond.output:g} out"
    return f"{short}; calls with more than {size(price.threshold)} going in: {long}"
