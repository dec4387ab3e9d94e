"""`/v1/agents`, `/v1/detect` and `/v1/models`: agents, their capabilities, installations and models."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
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
from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.routes.requests import current_service, json_answer
from agent_mux.service.service import in_thread

operations = OperationGroup("/v1", tag="agents", matches_raw_path=True)
model_operations = OperationGroup("/v1/models", tag="models", matches_raw_path=True)
REPLAY = {"agent": "replay"}


@operations.get("/agents", ResponseSpec(list[AgentView], links={"get_agent": {"agent": "$response.body#/0/agent"}}))
async def list_agents(request: Request) -> Response:
    """List every supported agent with its installation.

    Results of detection are cached for less than a minute; `POST /v1/detect` detects again.
    """
    service = current_service(request)
    views = await in_thread(service, _known, service.mux.adapters)
    found = await service.detection.all()
    return json_answer([_with_detection(view, found) for view in views])


@operations.get("/agents/{agent}", ResponseSpec(AgentView), errors=("AGENT_NOT_FOUND",), examples=REPLAY)
async def get_agent(request: Request) -> Response:
    """Get one agent with its installation."""
    service = current_service(request)
    adapter = service.mux.adapters.get(request.path_params["agent"])
    return json_answer(with_detected(agent_view(adapter), await service.mux.detector.detect(adapter.agent)))


@operations.get(
    "/agents/{agent}/capabilities", ResponseSpec(CapabilitiesView), errors=("AGENT_NOT_FOUND",), examples=REPLAY
)
async def get_capabilities(request: Request) -> Response:
    """Get the capabilities of an agent, as proven by recordings and live tests."""
    return json_answer(capabilities_json(current_service(request).mux.adapters.get(request.path_params["agent"])))


@operations.get("/detect", ResponseSpec(list[DetectedView]))
async def list_detected(request: Request) -> Response:
    """List the installed agents. Results are cached for less than a minute."""
    return _detected(await current_service(request).detection.all())


@operations.post("/detect", ResponseSpec(list[DetectedView]))
async def detect_agents(request: Request) -> Response:
    """Detect installed agents and their versions again. Takes a few seconds at most."""
    service = current_service(request)
    service.starter.require_open()
    return _detected(await service.detection.all(fresh=True))


def _known(adapters: AdapterRegistry) -> list[AgentView]:
    return list(known_agents(adapters))


def _with_detection(view: AgentView, found: Mapping[str, DetectedAgent]) -> AgentView:
    return with_detected(view, found[view.agent]) if view.agent in found else view


def _detected(found: Mapping[str, DetectedAgent]) -> Response:
    return json_answer([detected_view(one) for _, one in sorted(found.items())])


@model_operations.get("", ResponseSpec(list[ModelView]))
async def list_models(request: Request) -> Response:
    """List the models of all agents. Prices are US dollars per million tokens."""
    service = current_service(request)
    return json_answer(await in_thread(service, models_json, service.mux.models))


@model_operations.get("/{agent}", ResponseSpec(list[ModelView]), errors=("AGENT_NOT_FOUND",), examples=REPLAY)
async def list_models_of_agent(request: Request) -> Response:
    """List the models of one agent; empty for an agent that passes any model name on to its own command."""
    service = current_service(request)
    return json_answer(await in_thread(service, models_json, service.mux.models, request.path_params["agent"]))


@model_operations.get(
    "/{agent}/{model:path}", ResponseSpec(ModelView), errors=("AGENT_NOT_FOUND", "NOT_FOUND"), examples=REPLAY
)
async def get_model(request: Request) -> Response:
    """Get the model that a name or alias stands for. `status` is ok, alias or deprecated."""
    service = current_service(request)
    agent, model = request.path_params["agent"], request.path_params["model"]
    return json_answer(await in_thread(service, _model, service.mux.models, agent, model))


def _model(models: Models, agent: str, name: str) -> dict[str, Any]:
    verdict = models.validate(agent, name)
    if verdict.model is None:
        raise AgentMuxError("NOT_FOUND", verdict.sentence(models.adapters.get(agent).agent))
    return matched_model_json(models, agent, name)
