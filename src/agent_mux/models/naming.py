"""Which model a name means, and which names are near one that means none.

People and agents write more than the name: a provider in front (`anthropic/...`), the date of a version behind, a level
of thinking (`...:high`), options in brackets (`...[1m]`).
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from agent_mux.sdk.models import ModelCapabilities, without_date

MOST_SUGGESTIONS = 3
_OPTIONS = re.compile(r"(?:\[[^\]]*\]|:(?:off|none|minimal|low|medium|high|xhigh|max|auto))+$")


def find_model(models: Iterable[ModelCapabilities], name: str) -> ModelCapabilities | None:
    """The model that a name means: its own name before an alias, whole names before parts of them."""
    by_name: dict[str, ModelCapabilities] = {}
    bare: dict[str, ModelCapabilities] = {}
    for model in models:
        for known in (model.model_id, *model.alias):
            by_name.setdefault(known, model)
            bare.setdefault(known.rpartition("/")[2], model)
    whole = next((by_name[spelling] for spelling in _spellings(name) if spelling in by_name), None)
    if whole is not None:
        return whole
    last = name.rpartition("/")[2]
    return next((bare[spelling] for spelling in _spellings(last) if spelling in bare), None)


def near_names(models: Iterable[ModelCapabilities], name: str) -> tuple[str, ...]:
    """Names that may have been meant by one that is not known: those that contain it, then those that look like it."""
    wanted = _plain(name)
    if not wanted:
        return ()
    current = [model for model in models if not model.deprecated]
    names = [model.model_id for model in current]
    containing = sorted((known for known in names if wanted in _plain(known)), key=_newest_first)
    spelled = {_plain(known): known for model in reversed(current) for known in (*model.alias, model.model_id)}
    alike = [spelled[plain] for plain in get_close_matches(wanted, spelled, n=MOST_SUGGESTIONS)]
    return tuple(dict.fromkeys([*containing, *alike]))[:MOST_SUGGESTIONS]


def _spellings(name: str) -> Sequence[str]:
    plain = _OPTIONS.sub("", name)
    return (name, plain, without_date(plain))


def _plain(name: str) -> str:
    """Of what has a hyphen in one agent's names and a dot in another's."""
    return _OPTIONS.sub("", name).lower().replace(".", "-").rpartition("/")[2]


def _newest_first(name: str) -> tuple[int, list[int]]:
    """The shortest first; of equal length, the highest version."""
    return len(name), [-int(number) for number in re.findall(r"\d+", name)]
