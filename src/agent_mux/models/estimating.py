"""What a call would cost, for whoever knows which model a name means."""

from abc import ABC, abstractmethod

from agent_mux.models.verdicts import Verdict
from agent_mux.sdk.models import cost_in_usd


class EstimatesCosts(ABC):
    """The part of a registry of models that looks at prices alone."""

    @abstractmethod
    def validate(self, agent: str, model: str) -> Verdict:
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
