"""Which model a name means, and which names are near one that means none.

People and agents write more than the name: a provider in front (`anthropic/...`), the date of a version behind, a level
of thinking (`...:high`), options in brackets (`...[1m]`).


Whether a model is one that an agent has. Source: run API, section 5 (validate).

What there is to say about the model of a run, which is passed on whatever is said. Source: run API, section 2.


What a call would cost, for whoever knows which model a name means.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Literal

import msgspec

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, cost_in_usd, without_date

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


def similar_names(models: Iterable[ModelCapabilities], name: str) -> tuple[str, ...]:
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


ModelStatus = Literal["ok", "alias", "deprecated", "unknown"]


class ModelMatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a name comes to."""

    name: str
    """As it was given."""
    status: ModelStatus
    """`alias`: another name of a model that is known; `deprecated` whatever it was called; `unknown`: not listed, which
    does not keep an agent from taking it."""
    model: ModelCapabilities | None = None
    """The model that is meant."""
    successor: str | None = None
    """What to use instead of one that is deprecated."""
    suggestions: tuple[str, ...] = ()
    """What may have been meant by a name that is unknown."""

    def sentence(self, agent: str, *, is_passed_on: bool = False) -> str:
        """What there is to say about it, and what to do; empty where all is well.

        `is_passed_on`: the agent is given the name all the same.
        """
        meant = "" if self.model is None or self.model.model_id == self.name else f" (it means {self.model.model_id})"
        match self.status:
            case "deprecated":
                instead = f"; use {self.successor} instead" if self.successor else ""
                return f"{self.name}{meant} is deprecated{_end(self.model)}{instead}"
            case "unknown":
                near = " or ".join(self.suggestions)
                hint = f"did you mean {near}?" if near else f"`amux models list {agent}` shows those that are"
                but = ", and is passed on as it is" if is_passed_on else ""
                return f"{self.name!r} is no model that is known of {agent}{but}; {hint}"
        return ""


def match_model(models: Sequence[ModelCapabilities], name: str) -> ModelMatch:
    """What a name comes to among these models."""
    model = find_model(models, name)
    if model is None:
        return ModelMatch(name=name, status="unknown", suggestions=similar_names(models, name))
    if model.deprecated:
        return ModelMatch(name=name, status="deprecated", model=model, successor=model.successor)
    return ModelMatch(name=name, status="ok" if name == model.model_id else "alias", model=model)


def _end(model: ModelCapabilities | None) -> str:
    return f", and ends on {model.retires_on}" if model is not None and model.retires_on else ""


def model_notes(adapter: Adapter, model: str | None) -> tuple[str, ...]:
    """A sentence about a name that is unknown or deprecated, where the agent has a list of its own."""
    if model is None or adapter.takes_any_model:
        return ()
    known = adapter.models()
    said = match_model(known, model).sentence(adapter.agent, is_passed_on=True) if known else ""
    return (said,) if said else ()


class CostEstimator(ABC):
    """The part of a registry of models that looks at prices alone."""

    @abstractmethod
    def validate(self, agent: str, model: str) -> ModelMatch:
        """Whether a name is that of a model of this agent, and which."""

    def estimate_cost(  # noqa: PLR0913  # each kind of token has its price
        self,
        agent: str,
        model: str,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cached_tokens: int = 0,
        cache_creation_tokens: int = 0,
    ) -> float | None:
        """US dollars for one call; None where no price is known. Raises as `validate`.

        `input_tokens` are those that no cache is involved in; `output_tokens` have the thinking in them.
        """
        known = self.validate(agent, model).model
        if known is None or known.price is None:
            return None
        return cost_in_usd(
            known.price,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            cache_creation_tokens=cache_creation_tokens,
        )
