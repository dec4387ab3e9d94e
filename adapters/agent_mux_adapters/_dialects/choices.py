"""The context of a question with described options, which several agents share: a header, then `label: description`."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux_adapters._dialects.tolerant import rows, text


def read_choices(question: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the context and the labels of a native question: `header`, and `options` with label and description."""
    options = [(text(option.get("label")), text(option.get("description"))) for option in rows(question.get("options"))]
    return context_of(text(question.get("header")), options), tuple(label for label, _ in options)


def context_of(header: str | None, options: Iterable[tuple[str, str | None]]) -> str | None:
    """Return the header and a line for each option whose description adds to its label; None without both."""
    described = [f"{label}: {description}" for label, description in options if description and description != label]
    return "\n".join([*([header] if header else []), *described]) or None
