"""The model listing `cursor-agent models`: one line per model of the account, `name - Display name  (default)`.

Known from third-party reports: without an account the command fails.
"""

import re

from agent_mux.sdk.models import ModelCapabilities, ModelListing

_LINE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._/:-]*) - (.+)$")
_TAG = re.compile(r"\s*\((?:current|default)(?:, (?:current|default))?\)$")


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """Return the listed models. Raises `ValueError` for output without any model."""
    lines = [match for line in printed.splitlines() if (match := _LINE.match(line.strip()))]
    if printed.strip() and not lines:
        raise ValueError("no line lists a model")
    named: dict[str, str] = {}
    for line in lines:
        named.setdefault(line[1], _TAG.sub("", line[2]).strip())
    return tuple(
        ModelCapabilities(model_id=name, provider="cursor", display_name=shown) for name, shown in named.items()
    )


LISTING = ModelListing(argv=("models",), parse=parse, env={"NO_COLOR": "1"})
