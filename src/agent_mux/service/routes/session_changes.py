"""Checkpoints of stored sessions, and their changes: rename, delete and rewind, by the agents' own programs.

Changes need the scope `admin`, as they concern sessions of everybody who uses this machine, and are recorded in the
audit trail. They are refused for a session that worked outside of the allowed directories: the agent's program starts
in the directory of the session, and a rewind overwrites files there.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from anyio import to_thread
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.errors import AgentMuxError, AnyCode
from agent_mux.sdk.session_changes import RewindScope
from agent_mux.service.openapi.descriptions import BodySpec, ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.routes.requests import current_actor, current_service, json_body, masked_answer
from agent_mux.service.routes.sessions import LONGEST_NAME, session_reference
from agent_mux.service.service import Service, in_thread
from agent_mux.sessions.administration import MAX_TITLE_LENGTH
from agent_mux.sessions.checkpoints import Checkpoint, Rewound
from agent_mux.sessions.summary import SessionSummary

_READ_ERRORS: tuple[AnyCode, ...] = ("AGENT_NOT_FOUND", "SESSION_NOT_FOUND", "CAPABILITY_ERROR")
_ERRORS: tuple[AnyCode, ...] = (
    *_READ_ERRORS, "FORBIDDEN", "INVALID_STATE_TRANSITION", "AGENT_NOT_INSTALLED", "AGENT_CRASH", "SPAWN_ERROR",
    "TIMEOUT",
)  # fmt: skip
_PATH = "/{agent}/{session_id}"
_changes = anyio.CapacityLimiter(1)
"""One change at a time: an agent's program can take two minutes, and two of them could change the same files."""
_Result = TypeVar("_Result")
operations = OperationGroup("/v1/sessions", tag="sessions", matches_raw_path=True)


class TitleChange(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A new title of a session."""

    title: Annotated[str, Meta(max_length=MAX_TITLE_LENGTH, description="The title, without line breaks.")]


class Rewind(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where to rewind a session, and what."""

    checkpoint: Annotated[
        str,
        Meta(
            min_length=1, max_length=LONGEST_NAME, description="Id of a checkpoint, or an unambiguous beginning of it."
        ),
    ]
    scope: Annotated[
        RewindScope | None,
        Meta(description="Default: both where the agent can and has saved the files, else the conversation."),
    ] = None
    dry_run: Annotated[bool, Meta(description="Return what would be changed, and change nothing.")] = False


@operations.get(f"{_PATH}/checkpoints", ResponseSpec(list[Checkpoint]), errors=_READ_ERRORS)
async def list_checkpoints(request: Request) -> Response:
    """List the states of a session before each of its prompts, to which it can be rewound."""
    service = current_service(request)
    found = await in_thread(service, service.mux.sessions.checkpoints, *session_reference(request))
    return await masked_answer(service, found)


@operations.post(
    f"{_PATH}/rewind",
    ResponseSpec(Rewound, description="The session was rewound, or would be."),
    body=BodySpec(shape=Rewind, examples={"one": {"checkpoint": "6d2a865e"}}),
    errors=_ERRORS,
)
async def rewind_session(request: Request) -> Response:
    """Rewind a session to the state before a prompt. Restored files lose every later change, also those of people."""
    service, wanted = current_service(request), await json_body(request, Rewind)
    if wanted.dry_run:
        change = service.mux.sessions.plan_rewind
        return await masked_answer(service, await _changed(request, change, wanted.checkpoint, scope=wanted.scope))
    detail = {"checkpoint": wanted.checkpoint, "scope": wanted.scope or "default"}
    async with service.audit.recorded(current_actor(request), "session.rewind", "session", _name(request), **detail):
        done = await _changed(request, service.mux.sessions.rewind, wanted.checkpoint, scope=wanted.scope)
    return await masked_answer(service, done)


@operations.patch(
    _PATH,
    ResponseSpec(SessionSummary, description="The title was changed."),
    body=BodySpec(shape=TitleChange, examples={"one": {"title": "Release notes"}}),
    errors=_ERRORS,
)
async def rename_session(request: Request) -> Response:
    """Set the title of a session."""
    service, wanted = current_service(request), await json_body(request, TitleChange)
    async with service.audit.recorded(current_actor(request), "session.rename", "session", _name(request)):
        done = await _changed(request, service.mux.sessions.rename, wanted.title)
    return await masked_answer(service, done)


@operations.delete(_PATH, ResponseSpec(SessionSummary, description="The session was deleted."), errors=_ERRORS)
async def delete_session(request: Request) -> Response:
    """Delete a session permanently."""
    service = current_service(request)
    async with service.audit.recorded(current_actor(request), "session.delete", "session", _name(request)):
        done = await _changed(request, service.mux.sessions.delete)
    return await masked_answer(service, done)


def _name(request: Request) -> str:
    return session_reference(request)[0]


async def _changed(request: Request, change: Callable[..., _Result], *arguments: Any, **named: Any) -> _Result:
    """Change the session of a request in a thread. Raises FORBIDDEN, and the errors of `change`."""
    service, (session, wanted) = current_service(request), session_reference(request)

    def perform() -> _Result:
        known = service.mux.sessions.find(session, wanted).summary
        _check_directory(service, known)
        return change(known.id, *arguments, **named)

    return await to_thread.run_sync(perform, limiter=_changes)


def _check_directory(service: Service, known: SessionSummary) -> None:
    if known.cwd is None or not service.roots.contains(known.cwd):
        outside = f"session {known.id} worked outside of the roots of the service ({known.cwd or 'directory unknown'})"
        raise AgentMuxError("FORBIDDEN", f"{outside}; allow it with `amux serve --root DIRECTORY`")
