"""`/v1/quota`: what is known about the quotas of the agents' accounts. Read-only; no provider is asked."""

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import current_service, json_answer, read_query
from agent_mux.service.service import in_thread
from agent_mux.sessions.quota import AgentQuota, Quotas

operations = OperationGroup("/v1/quota", tag="quota")
LONGEST_NAME = 200  # characters


class QuotaQuery(QueryParameters):
    """Query of quotas."""

    agent: Annotated[str, Meta(max_length=LONGEST_NAME, description="Agent name or alias; default: all.")] | None = None


@operations.get("", ResponseSpec(list[AgentQuota]), query=QuotaQuery, errors=("AGENT_NOT_FOUND",))
async def list_quotas(request: Request) -> Response:
    """List the last reported quota of each agent, from recordings of runs and from stored sessions.

    Agents about whose quota nothing is known are left out.
    """
    service, query = current_service(request), read_query(request, QuotaQuery)
    return json_answer(await in_thread(service, _list, service.mux.quota, query.agent))


def _list(quotas: Quotas, agent: str | None) -> list[AgentQuota]:
    if agent is None:
        return quotas.list()
    known = quotas.get(agent)
    return [] if known is None else [known]
