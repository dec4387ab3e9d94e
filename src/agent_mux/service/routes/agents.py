"""`/v1/agents` and `/v1/detect`: which agents there are, what they can do, and what is installed.

`/v1/models`: the models that agents offer, and what they cost."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from agent_mux.agents.detection import Detected
from agent_mux.api.agents import (
    AgentView,
    CapabilitiesView,
    DetectedView,
    agent_view,
    capabilities_json,
    detected_view,
    known_agents,
    with_detected,
)
from agent_mux.api.costs import ModelView, judged_model_json, models_json
from agent_mux.errors import AgentMuxError
from agent_mux.models.registry import Models
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.openapi.descriptions import ResponseSpec, described
from agent_mux.service.routes.requests import CurrentService, RawPathRoute, json_answer
from agent_mux.service.service import in_thread

router = APIRouter(prefix="/v1", tags=["agents"], route_class=RawPathRoute)
REPLAY = {"agent": "replay"}


@router.get("/agents")
@described(ResponseSpec(list[AgentView], links={"get_agent": {"agent": "$response.body#/0/agent"}}))
async def list_agents(service: CurrentService) -> Response:
    """Every agent that can be driven, and what is installed.

    What was found on the machine is remembered for less than a minute; `POST /v1/detect` looks again.
    """
    views = await in_thread(service, _known, service.mux.adapters)
    found = await service.detecting.all()
    return json_answer([_joined(view, found) for view in views])


@router.get("/agents/{agent}")
@described(ResponseSpec(AgentView), errors=("AGENT_NOT_FOUND",), parameters=REPLAY)
async def get_agent(agent: str, service: CurrentService) -> Response:
    """One agent."""
    adapter = service.mux.adapters.get(agent)
    return json_answer(with_detected(agent_view(adapter), await service.mux.detector.detect(adapter.agent)))


@router.get("/agents/{agent}/capabilities")
@described(ResponseSpec(CapabilitiesView), errors=("AGENT_NOT_FOUND",), parameters=REPLAY)
async def get_capabilities(agent: str, service: CurrentService) -> Response:
    """What an agent can do, as recordings and live tests have proven."""
    return json_answer(capabilities_json(service.mux.adapters.get(agent)))


@router.get("/detect")
@described(ResponseSpec(list[DetectedView]))
async def list_detected(service: CurrentService) -> Response:
    """What is installed, as far as it is remembered: for less than a minute."""
    return _detected(await service.detecting.all())


@router.post("/detect")
@described(ResponseSpec(list[DetectedView]))
async def detect_agents(service: CurrentService) -> Response:
    """Look for the agents on the machine again, and ask for their versions. It takes some seconds at most."""
    service.runs.require_open()
    return _detected(await service.detecting.all(fresh=True))


def _known(adapters: AdapterRegistry) -> list[AgentView]:
    return list(known_agents(adapters))


def _joined(view: AgentView, found: Mapping[str, Detected]) -> AgentView:
    return with_detected(view, found[view.agent]) if view.agent in found else view


def _detected(found: Mapping[str, Detected]) -> Response:
    return json_answer([detected_view(one) for _, one in sorted(found.items())])


models_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=RawPathRoute)


@models_router.get("")
@described(ResponseSpec(list[ModelView]))
async def list_models(service: CurrentService) -> Response:
    """The models of all agents. Prices are US dollars for a million tokens."""
    return json_answer(await in_thread(service, models_json, service.mux.models))


@models_router.get("/{agent}")
@described(ResponseSpec(list[ModelView]), errors=("AGENT_NOT_FOUND",), parameters={"agent": "replay"})
async def list_models_of_agent(agent: str, service: CurrentService) -> Response:
    """The models of one agent. None are known of one that takes whatever its command takes."""
    return json_answer(await in_thread(service, models_json, service.mux.models, agent))


@models_router.get("/{agent}/{model:path}")
@described(ResponseSpec(ModelView), errors=("AGENT_NOT_FOUND", "NOT_FOUND"), parameters={"agent": "replay"})
async def get_model(agent: str, model: str, service: CurrentService) -> Response:
    """The model that a name means, and how it does: `status` is ok, alias or deprecated."""
    return json_answer(await in_thread(service, _model, service.mux.models, agent, model))


def _model(models: Models, agent: str, name: str) -> dict[str, Any]:
    verdict = models.validate(agent, name)
    if verdict.model is None:
        raise AgentMuxError("NOT_FOUND", verdict.sentence(models.adapters.get(agent).agent))
    return judged_model_json(models, agent, name)
