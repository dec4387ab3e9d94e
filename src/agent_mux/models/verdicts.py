"""Whether a model is one that an agent has. Source: run API, section 5 (validate).

What there is to say about the model of a run, which is passed on whatever is said. Source: run API, section 2.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from agent_mux.models.naming import find_model, near_names
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities

Status = Literal["ok", "alias", "deprecated", "unknown"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a name comes to."""

    name: str
    """As it was given."""
    status: Status
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


def judge(models: Sequence[ModelCapabilities], name: str) -> Verdict:
    """What a name comes to among these models."""
    model = find_model(models, name)
    if model is None:
        return Verdict(name=name, status="unknown", suggestions=near_names(models, name))
    if model.deprecated:
        return Verdict(name=name, status="deprecated", model=model, successor=model.successor)
    return Verdict(name=name, status="ok" if name == model.model_id else "alias", model=model)


def _end(model: ModelCapabilities | None) -> str:
    return f", and ends on {model.retires_on}" if model is not None and model.retires_on else ""


def model_notes(adapter: Adapter, model: str | None) -> tuple[str, ...]:
    """A sentence about a name that is unknown or deprecated, where the agent has a list of its own."""
    if model is None or adapter.takes_any_model:
        return ()
    known = adapter.models()
    said = judge(known, model).sentence(adapter.agent, is_passed_on=True) if known else ""
    return (said,) if said else ()
