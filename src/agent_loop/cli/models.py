"""Which model is asked."""

from collections.abc import Mapping

from agent_loop.cli.commands import Start
from agent_loop.cli.places import MODEL, settings_model
from agent_loop.providers.registry import NAMES, OFFLINE

DEFAULT_MODEL = "scripted"


def model_of(start: Start, environ: Mapping[str, str]) -> str:
    """The model that is asked for, or the usual one; a name without a provider is one of the usual provider.

    Raises `Fault` where the settings cannot be read.
    """
    usual = environ.get(MODEL) or settings_model(environ) or DEFAULT_MODEL
    if start.model is None:
        return usual
    vendor, colon, _ = usual.partition(":")
    is_bare = ":" not in start.model and start.model not in NAMES
    return f"{vendor}:{start.model}" if colon and is_bare and vendor not in OFFLINE else start.model
