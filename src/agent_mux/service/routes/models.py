"""`/v1/models`: the models that agents offer, and what they cost."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from agent_mux.api.costs import ModelView, judged_model_json, models_json
from agent_mux.errors import AgentMuxError
from agent_mux.models.registry import Models
from agent_mux.service.openapi.describing import Answer, described
from agent_mux.service.routes.requests import ByRawPath, TheService, json_answer
from agent_mux.service.service import in_thread

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=ByRawPath)


@router.get("")
@described(Answer(list[ModelView]))
async def list_models(service: TheService) -> Response:
    """The models of all agents. Prices are US dollars for a million tokens."""
    return json_answer(await in_thread(service, models_json, service.mux.models))


@router.get("/{agent}")
@described(Answer(list[ModelView]), errors=("AGENT_NOT_FOUND",), parameters={"agent": "replay"})
async def list_models_of_agent(agent: str, service: TheService) -> Response:
    """The models of one agent. None are known of one that takes whatever its command takes."""
    return json_answer(await in_thread(service, models_json, service.mux.models, agent))


@router.get("/{agent}/{model:path}")
@described(Answer(ModelView), errors=("AGENT_NOT_FOUND", "NOT_FOUND"), parameters={"agent": "replay"})
async def get_model(agent: str, model: str, service: TheService) -> Response:
    """The model that a name means, and how it does: `status` is ok, alias or deprecated."""
    return json_answer(await in_thread(service, _model, service.mux.models, agent, model))


def _model(models: Models, agent: str, name: str) -> dict[str, Any]:
    verdict = models.validate(agent, name)
    if verdict.model is None:
        raise AgentMuxError("NOT_FOUND", verdict.sentence(models.adapters.get(agent).agent))
    return judged_model_json(models, agent, name)
