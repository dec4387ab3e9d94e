"""`/v1/comparisons/{id}/trials/{trial}`: one trial, its patch, and commands to its run while it is active."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.service.comparisons.store import find_trial
from agent_mux.service.comparisons.views import (
    ComparisonTrialView,
    TrialCommandResult,
    trial_run_view,
    trial_view,
)
from agent_mux.service.control import execute_on_trial
from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import Endpoint, OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.commands import COMMAND_ERRORS, COMMANDS, command_body, read_command
from agent_mux.service.routes.comparisons import comparison_id_of
from agent_mux.service.routes.files import ATTACHMENT, DIFF
from agent_mux.service.routes.requests import current_actor, current_service, masked_answer, read_query
from agent_mux.service.routes.runs import LONGEST_NAME
from agent_mux.service.service import Service, in_thread

operations = OperationGroup("/v1/comparisons/{comparison_id}/trials", tag="comparisons")
_DESCRIPTIONS: Mapping[str, str] = {
    "steer": "Send a message into the running turn of a trial.",
    "approve": "Approve an action that the agent of a trial asks for.",
    "deny": "Deny an action that the agent of a trial asks for, or its question.",
    "respond": "Answer a question that the agent of a trial asks.",
    "abort": (
        "Abort the run of a trial, which is then excluded, or of the judge (`judgeRun`). The comparison continues."
    ),
}


class PatchQuery(QueryParameters):
    """What the result of a trial is compared with."""

    against: (
        Annotated[str, Meta(max_length=LONGEST_NAME, description="Trial id to compare with; default: the start.")]
        | None
    ) = None


@operations.get("/{trial}", ResponseSpec(ComparisonTrialView), errors=("NOT_FOUND", "CONFIG_ERROR"))
async def get_trial(request: Request) -> Response:
    """Get one trial: its outcome, checks and figures; while it is active, its run with what it waits for."""
    service, comparison_id = current_service(request), comparison_id_of(request)
    name = str(request.path_params["trial"])
    record, trial = await in_thread(service, service.comparisons.store.trial, comparison_id, name)
    live = service.comparisons.live(comparison_id)
    handle = None if live is None else live.handle_of(trial.id)
    return await masked_answer(service, trial_view(record, trial, handle))


@operations.get(
    "/{trial}/patch",
    ResponseSpec(
        description="The patch for `git apply`, byte for byte, as an attachment; with `against`, a unified diff.",
        other_media={DIFF: str},
    ),
    query=PatchQuery,
    errors=("NOT_FOUND", "CONFIG_ERROR", "SPAWN_ERROR"),
)
async def read_trial_patch(request: Request) -> Response:
    """Get the changes of a trial against the start, or against the result of another trial. Empty without changes."""
    service, query = current_service(request), read_query(request, PatchQuery)
    names = comparison_id_of(request), str(request.path_params["trial"])
    content = await in_thread(service, _patch, service, *names, query.against)
    return Response(content, headers=ATTACHMENT, media_type=DIFF)


def _patch(service: Service, comparison_id: str, name: str, against: str | None) -> bytes:
    record, trial = service.comparisons.store.trial(comparison_id, name)
    store = service.comparisons.store.comparisons
    if against is None:
        return store.patch(trial.id, comparison_id)
    return store.difference(find_trial(record, against).id, trial.id, comparison_id)


def _endpoint(name: str, kind: type[Any]) -> Endpoint:
    async def send(request: Request) -> Response:
        service, comparison_id = current_service(request), comparison_id_of(request)
        command = await read_command(request, name, kind)
        handle, result = await execute_on_trial(
            service, current_actor(request), comparison_id, str(request.path_params["trial"]), command
        )
        done = TrialCommandResult(delivery=result["delivery"], run=trial_run_view(handle))
        return await masked_answer(service, done)

    send.__name__ = f"{name}_trial"
    send.__doc__ = _DESCRIPTIONS[name]
    return send


for _name in _DESCRIPTIONS:
    _kind = COMMANDS[_name]
    operations.post(
        f"/{{trial}}/{_name}",
        ResponseSpec(TrialCommandResult, description="The command was executed."),
        body=command_body(_name, _kind),
        errors=("NOT_FOUND", *(code for code in COMMAND_ERRORS if code != "RUN_NOT_FOUND")),
    )(_endpoint(_name, _kind))
