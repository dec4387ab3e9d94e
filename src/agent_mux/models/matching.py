"""Matching a model name, as people and agents write it, with the models of an agent.

Names may have a provider as a prefix (`anthropic/...`), the date of a version as a suffix, a thinking level
(`...:high`), or options in brackets (`...[1m]`). See docs/spec/run-api.md, sections 2 and 5.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from agent_mux._util.suggestions import closest_names
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, cost_in_usd, without_date

MOST_SUGGESTIONS = 3
_OPTIONS = r"(?:\[[^\]]*\]|:(?:off|none|minimal|low|medium|high|xhigh|max|auto))+$"

ModelStatus = Literal["ok", "alias", "deprecated", "unknown"]


class ModelMatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of matching a name with the models of an agent."""

    name: str
    """The name as given."""
    status: ModelStatus
    """`alias`: another name of a known model; `deprecated`: a deprecated model, by whatever name; `unknown`: not
    listed, although the agent may accept it."""
    model: ModelCapabilities | None = None
    """The matching model; None if unknown."""
    successor: str | None = None
    """The replacement of a deprecated model."""
    suggestions: tuple[str, ...] = ()
    """Similar names, if the name is unknown."""

    def sentence(self, agent: str, *, is_passed_on: bool = False) -> str:
        """Return a warning with the next step; empty if the name is neither deprecated nor unknown.

        Args:
            agent: The agent's name.
            is_passed_on: Whether the agent receives the name anyway.
        """
        meaning = (
            "" if self.model is None or self.model.model_id == self.name else f" (resolves to {self.model.model_id})"
        )
        match self.status:
            case "deprecated":
                instead = f"; use {self.successor} instead" if self.successor else ""
                return f"{self.name}{meaning} is deprecated{_retirement(self.model)}{instead}"
            case "unknown":
                similar = " or ".join(self.suggestions)
                hint = f"did you mean {similar}?" if similar else f"see `amux models list {agent}`"
                passed_on = ", passed on unchanged" if is_passed_on else ""
                return f"unknown {agent} model {self.name!r}{passed_on}; {hint}"
        return ""


def match_model(models: Sequence[ModelCapabilities], name: str) -> ModelMatch:
    """Match a name with these models."""
    model = find_model(models, name)
    if model is None:
        return ModelMatch(name=name, status="unknown", suggestions=similar_names(models, name))
    if model.deprecated:
        return ModelMatch(name=name, status="deprecated", model=model, successor=model.successor)
    return ModelMatch(name=name, status="ok" if name == model.model_id else "alias", model=model)


def find_model(models: Iterable[ModelCapabilities], name: str) -> ModelCapabilities | None:
    """Return the model that a name means. Ids precede aliases; full names precede names without a provider."""
    by_name: dict[str, ModelCapabilities] = {}
    by_bare_name: dict[str, ModelCapabilities] = {}
    for model in models:
        for known in (model.model_id, *model.alias):
            by_name.setdefault(known, model)
            by_bare_name.setdefault(known.rpartition("/")[2], model)
    full = next((by_name[spelling] for spelling in _spellings(name) if spelling in by_name), None)
    if full is not None:
        return full
    bare = name.rpartition("/")[2]
    return next((by_bare_name[spelling] for spelling in _spellings(bare) if spelling in by_bare_name), None)


def similar_names(models: Iterable[ModelCapabilities], name: str) -> tuple[str, ...]:
    """Return model names similar to an unknown one: first those that contain it, then those spelled similarly."""
    wanted = _normalize(name)
    if not wanted:
        return ()
    current = [model for model in models if not model.deprecated]
    names = [model.model_id for model in current]
    containing = sorted((known for known in names if wanted in _normalize(known)), key=_by_length_and_version)
    spelled = {_normalize(known): known for model in reversed(current) for known in (*model.alias, model.model_id)}
    close = [spelled[normal] for normal in closest_names(wanted, spelled, limit=MOST_SUGGESTIONS)]
    return tuple(dict.fromkeys([*containing, *close]))[:MOST_SUGGESTIONS]


def model_notes(adapter: Adapter, model: str | None) -> tuple[str, ...]:
    """Return a warning if the model of a run is unknown or deprecated, and the adapter knows the agent's models."""
    if model is None or adapter.takes_any_model:
        return ()
    known = adapter.models()
    warning = match_model(known, model).sentence(adapter.agent, is_passed_on=True) if known else ""
    return (warning,) if warning else ()


class CostEstimator(ABC):
    """Base class of model registries: estimates the cost of a call from the prices of the matching model."""

    @abstractmethod
    def validate(self, agent: str, model: str) -> ModelMatch:
        """Match a name with the models of an agent."""

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
        """Return the cost of one call in US dollars; None if no price is known. Raises like `validate`.

        `input_tokens` exclude tokens read from or written to a cache; `output_tokens` include thinking tokens.
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


def _spellings(name: str) -> Sequence[str]:
    plain = re.sub(_OPTIONS, "", name)
    return (name, plain, without_date(plain))


def _normalize(name: str) -> str:
    """Remove options and provider, and unify case and separators: some agents write a dot where others use a hyphen."""
    return re.sub(_OPTIONS, "", name).lower().replace(".", "-").rpartition("/")[2]


def _by_length_and_version(name: str) -> tuple[int, list[int]]:
    """Sort key: the shortest name first; of equal length, the highest version first."""
    return len(name), [-int(number) for number in re.findall(r"\d+", name)]


def _retirement(model: ModelCapabilities | None) -> str:
    return f" and will be retired on {model.retires_on}" if model is not None and model.retires_on else ""
