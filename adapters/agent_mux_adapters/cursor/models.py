"""`cursor-agent models`: a line for each model of the account, `name - Name for people  (default)`.

From what others say of it: without an account it ends with an error.
"""

import re

from agent_mux.models import ModelCapabilities, ModelListing

_LINE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._/:-]*) - (.+)$")
_TAG = re.compile(r"\s*\((?:current|default)(?:, (?:current|default))?\)$")


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """The models. Raises `ValueError` where something was printed, and no model among it."""
    lines = [match for line in printed.splitlines() if (match := _LINE.match(line.strip()))]
    if printed.strip() and not lines:
        raise ValueError("no line is that of a model")
    named: dict[str, str] = {}
    for line in lines:
        named.setdefault(line[1], _TAG.sub("", line[2]).strip())
    return tuple(
        ModelCapabilities(model_id=name, provider="cursor", display_name=shown) for name, shown in named.items()
    )


LISTING = ModelListing(argv=("models",), parse=parse, env={"NO_COLOR": "1"})
