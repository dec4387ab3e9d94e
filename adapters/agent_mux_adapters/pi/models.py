"""`pi --list-models`: a table of the models for which pi has credentials, until 0.73 printed to standard error."""

import re

from agent_mux.sdk.models import ModelCapabilities, ModelListing

_COLUMNS = ("provider", "model", "context", "max-out", "thinking", "images")
_NONE = "No models available"
_SIZE = re.compile(r"^(\d{1,12}(?:\.\d{1,12})?)([KM]?)$")
_UNITS = {"": 1, "K": 1_000, "M": 1_000_000}


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse the table; sizes are rounded as printed. Raises `ValueError` without a table."""
    lines = [line.split() for line in printed.splitlines()]
    if list(_COLUMNS) not in lines:
        if _NONE in printed:
            return ()
        raise ValueError("the output contains no table of models")
    rows = lines[lines.index(list(_COLUMNS)) + 1 :]
    return tuple(_model(row) for row in rows if len(row) == len(_COLUMNS))


def _model(row: list[str]) -> ModelCapabilities:
    provider, model, context, most, thinking, images = row
    return ModelCapabilities(
        model_id=f"{provider}/{model}",
        provider=provider,
        context_window=_size(context),
        max_output_tokens=_size(most),
        thinking=thinking == "yes",
        image_input=images == "yes",
    )


def _size(shown: str) -> int | None:
    match = _SIZE.match(shown)
    return None if match is None else round(float(match[1]) * _UNITS[match[2]])


LISTING = ModelListing(argv=("--list-models",), parse=parse, reads=("stdout", "stderr"))
