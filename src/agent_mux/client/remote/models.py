"""The models of the agents of a service: as `agent_mux.models.registry`, over HTTP."""

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from agent_mux.api.models import ModelView, model_from
from agent_mux.client.remote.adapters import RemoteAdapters
from agent_mux.client.remote.asking import answer, refused
from agent_mux.client.remote.line import Line
from agent_mux.errors import AgentMuxError
from agent_mux.models.estimating import EstimatesCosts
from agent_mux.models.naming import near_names
from agent_mux.models.registry import LISTING_TIMEOUT
from agent_mux.models.verdicts import Verdict
from agent_mux.sdk.models import ModelCapabilities

_Models = tuple[ModelCapabilities, ...]
_THERE = "use `AgentMux` on the machine of the service"


class RemoteModels(EstimatesCosts):
    """What `AgentMux.models` is there. Blocking; every call asks the service. Raises what the service says, too."""

    def __init__(self, line: Line) -> None:
        """Nothing is asked yet."""
        self._line = line
        self.adapters = RemoteAdapters(line)

    def list(self, agent: str | None = None) -> _Models:
        """The models that an agent offers, or all agents, each name once. As `Models.list`."""
        if agent is not None:
            return _models(answer(self._line, list[ModelView], "models", agent))
        offered = (model for models in self.catalog().values() for model in models)
        return tuple({model.model_id: model for model in offered}.values())

    def catalog(self) -> dict[str, _Models]:
        """The models of every agent of which some are known. As `Models.catalog`."""
        found: dict[str, list[ModelView]] = {}
        for view in answer(self._line, list[ModelView], "models"):
            found.setdefault(view.agent, []).append(view)
        return {agent: _models(views) for agent, views in found.items()}

    def get(self, agent: str, model: str) -> ModelCapabilities:
        """The model that a name means. As `Models.get`."""
        try:
            return model_from(self._view(agent, model))
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            raise AgentMuxError("VALIDATION_ERROR", error.message) from error

    def validate(self, agent: str, model: str) -> Verdict:
        """Whether a name is that of a model of this agent, and which. As `Models.validate`.

        Suggestions are made of what `list` has: the service may know more, and says so in the error of `get`.
        """
        try:
            view = self._view(agent, model)
        except AgentMuxError as error:
            if error.code != "NOT_FOUND":
                raise
            return Verdict(name=model, status="unknown", suggestions=near_names(self.list(agent), model))
        successor = view.successor if view.deprecated else None
        return Verdict(name=model, status=view.status or "ok", model=model_from(view), successor=successor)

    def default(self, agent: str) -> NoReturn:  # noqa: ARG002  # here and below: the parameters are as there
        """Refused: the service does not tell what an adapter chooses."""
        raise refused("telling the default model of an agent", _THERE)

    def current(self, agent: str, *, project: Path | None = None) -> NoReturn:  # noqa: ARG002
        """Refused: it is in files of that machine."""
        raise refused("telling the current model of an agent", _THERE)

    def refresh(self, agent: str, *, timeout: float = LISTING_TIMEOUT) -> NoReturn:  # noqa: ARG002
        """Refused: the service does not ask agents for their models."""
        raise refused("asking an agent for its models", "use `amux models refresh` on the machine of the service")

    def can_refresh(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `refresh`."""
        raise refused("asking agents for their models", "use `amux models refresh` on the machine of the service")

    def is_listed_by_agent(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused: the service does not tell where what it knows is from."""
        raise refused("telling who listed the models of an agent", _THERE)

    def last_updated(self, agent: str) -> NoReturn:  # noqa: ARG002
        """Refused, as `is_listed_by_agent`."""
        raise refused("telling when models were listed", _THERE)

    def _view(self, agent: str, model: str) -> ModelView:
        found: ModelView = answer(self._line, ModelView, "models", agent, model)
        return found


def _models(views: Iterable[ModelView]) -> _Models:
    return tuple(map(model_from, views))
