"""`/v1/cost`: what the agents' stored sessions cost."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from agent_mux.api.costs import CostView, cost_json
from agent_mux.service.openapi.describing import Answer, described
from agent_mux.service.routes.requests import TheService, Wanted, json_answer
from agent_mux.service.service import in_thread
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.queries import GroupBy
from agent_mux.sessions.summary import SessionFilter

router = APIRouter(prefix="/v1/cost", tags=["cost"])


@router.get("")
@described(Answer(CostView), errors=("AGENT_NOT_FOUND", "CAPABILITY_ERROR"), parameters={"by": "day"})
async def report_cost(
    service: TheService, wanted: Wanted, by: Annotated[GroupBy, Query(description="Sum up by.")] = "agent"
) -> Response:
    """What the stored sessions cost, in US dollars. Each model call counts once, also where a fork has a copy of it.

    What agents tell themselves (native) and what price lists say (computed) are kept apart; calls that nobody can
    price are counted. Times and models are those of the calls.
    """
    return json_answer(await in_thread(service, _report, service.mux.sessions, wanted, by))


def _report(sessions: Sessions, wanted: SessionFilter, by: GroupBy) -> dict[str, Any]:
    return cost_json(by, sessions.total_cost(wanted, group_by=by))
