"""`/v1/agents`, `/v1/detect` and `/v1/models`: agents, their capabilities, installations and models."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from agent_mux.agents.detection import DetectedAgent
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
from agent_mux.api.models import ModelView, matched_model_json, models_json
from agent_mux.errors import AgentMuxError
from agent_mux.models.registry import Models
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.openapi.descriptions import ResponseSpec, described
from agent_mux.service.routes.requests import CurrentService, RawPathRoute, json_answer
from agent_mux.service.service import in_thread

router = APIRouter(prefix="/v1", tags=["agents"], route_class=RawPathRoute)
REPLAY = {"agent": "replay"}
models_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=RawPathRoute)


@router.get("/agents")
@described(ResponseSpec(list[AgentView], links={"get_agent": {"agent": "$response.body#/0/agent"}}))
async def list_agents(service: CurrentService) -> Response:
    """List every supported agent with its installation.

    Results of detection are cached for less than a minute; `POST /v1/detect` detects again.
    """
    views = await in_thread(service, _known, service.mux.adapters)
    found = await service.detection.all()
    return json_answer([_with_detection(view, found) for view in views])


@router.get("/agents/{agent}")
@described(ResponseSpec(AgentView), errors=("AGENT_NOT_FOUND",), parameters=REPLAY)
async def get_agent(agent: str, service: CurrentService) -> Response:
    """Get one agent with its installation."""
    adapter = service.mux.adapters.get(agent)
    return json_answer(with_detected(agent_view(adapter), await service.mux.detector.detect(adapter.agent)))


@router.get("/agents/{agent}/capabilities")
@described(ResponseSpec(CapabilitiesView), errors=("AGENT_NOT_FOUND",), parameters=REPLAY)
async def get_capabilities(agent: str, service: CurrentService) -> Response:
    """Get the capabilities of an agent, as proven by recordings and live tests."""
    return json_answer(capabilities_json(service.mux.adapters.get(agent)))


@router.get("/detect")
@described(ResponseSpec(list[DetectedView]))
async def list_detected(service: CurrentService) -> Response:
    """List the installed agents. Results are cached for less than a minute."""
    return _detected(await service.detection.all())


@router.post("/detect")
@described(ResponseSpec(list[DetectedView]))
async def detect_agents(service: CurrentService) -> Response:
    """Detect installed agents and their versions again. Takes a few seconds at most."""
    service.runs.require_open()
    return _detected(await service.detection.all(fresh=True))


def _known(adapters: AdapterRegistry) -> list[AgentView]:
    return list(known_agents(adapters))


def _with_detection(view: AgentView, found: Mapping[str, DetectedAgent]) -> AgentView:
    return with_detected(view, found[view.agent]) if view.agent in found else view


def _detected(found: Mapping[str, DetectedAgent]) -> Response:
    return json_answer([detected_view(one) for _, one in sorted(found.items())])


@models_router.get("")
@described(ResponseSpec(list[ModelView]))
async def list_models(service: CurrentService) -> Response:
    """List the models of all agents. Prices are US dollars per million tokens."""
    return json_answer(await in_thread(service, models_json, service.mux.models))


@models_router.get("/{agent}")
@described(ResponseSpec(list[ModelView]), errors=("AGENT_NOT_FOUND",), parameters={"agent": "replay"})
async def list_models_of_agent(agent: str, service: CurrentService) -> Response:
    """List the models of one agent; empty for an agent that passes any model name on to its own command."""
    return json_answer(await in_thread(service, models_json, service.mux.models, agent))


@models_router.get("/{agent}/{model:path}")
@described(ResponseSpec(ModelView), errors=("AGENT_NOT_FOUND", "NOT_FOUND"), parameters={"agent": "replay"})
async def get_model(agent: str, model: str, service: CurrentService) -> Response:
    """Get the model that a name or alias stands for. `status` is ok, alias or deprecated."""
    return json_answer(await in_thread(service, _model, service.mux.models, agent, model))


def _model(models: Models, agent: str, name: str) -> dict[str, Any]:
    verdict = models.validate(agent, name)
    if verdict.model is None:
        raise AgentMuxError("NOT_FOUND", verdict.sentence(models.adapters.get(agent).agent))
    return matched_model_json(models, agent, name)
