"""`/v1/profiles`: named run options."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.api.profiles import ProfileChanged, ProfileView, profile_view, profile_views
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES
from agent_mux.service.openapi.descriptions import BodySpec, ResponseSpec, SchemaRef
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import current_actor, current_service, json_answer, json_body, read_query
from agent_mux.service.service import in_thread
from agent_mux.settings.durations import check_wire_durations
from agent_mux.settings.profiles import Profiles, Scope

operations = OperationGroup("/v1/profiles", tag="profiles", matches_raw_path=True)


class WriteQuery(QueryParameters):
    """Query of a write."""

    scope: Annotated[Scope, Meta(description="Where to write the profile.")] = "global"


class DeletionQuery(QueryParameters):
    """Query of a deletion."""

    scope: Annotated[Scope, Meta(description="Which profile to delete if both scopes have it.")] | None = None


@operations.get("", ResponseSpec(list[ProfileView]))
async def list_profiles(request: Request) -> Response:
    """List all profiles by name: those of the project that the service runs in, and the global ones."""
    service = current_service(request)
    return json_answer(await in_thread(service, profile_views, service.mux.profiles))


@operations.get("/{name}", ResponseSpec(ProfileView), errors=("VALIDATION_ERROR", "PROFILE_NOT_FOUND", "CONFIG_ERROR"))
async def get_profile(request: Request) -> Response:
    """Get one profile, without its secrets, and which file each option comes from."""
    service = current_service(request)
    return json_answer(profile_view(await in_thread(service, service.mux.profiles.get, _name(request))))


@operations.put(
    "/{name}",
    ResponseSpec(
        ProfileChanged,
        description="The profile was written.",
        links={
            "get_profile": {"name": "$response.body#/profile"},
            "delete_profile": {"name": "$response.body#/profile"},
        },
    ),
    query=WriteQuery,
    body=BodySpec(
        shape=SchemaRef("ProfileFields"),
        is_required=False,
        examples={"quick": {"agent": "replay", "timeout": 60_000, "tags": ["review"]}},
    ),
    errors=("CONFIG_ERROR", "CONFIG_LOCK_ERROR"),
    examples={"name": "review"},
)
async def set_profile(request: Request) -> Response:
    """Create or replace a profile. The keys are those of profile files; durations are in milliseconds."""
    service, name = current_service(request), _name(request)
    scope = read_query(request, WriteQuery).scope
    fields = await json_body(request, dict[str, Any])
    async with service.audit.recorded(current_actor(request), "profile.set", "profile", name, scope=scope):
        path = await in_thread(service, _set, service.mux.profiles, name, fields, scope)
    return json_answer(ProfileChanged(profile=name, scope=scope, path=path))


@operations.delete(
    "/{name}",
    ResponseSpec(ProfileChanged, description="The profile was deleted."),
    query=DeletionQuery,
    errors=("PROFILE_NOT_FOUND", "CONFIG_ERROR", "CONFIG_LOCK_ERROR"),
)
async def delete_profile(request: Request) -> Response:
    """Delete a profile. `scope` is required when both the project and the global scope have it."""
    service, name = current_service(request), _name(request)
    scope = read_query(request, DeletionQuery).scope
    async with service.audit.recorded(current_actor(request), "profile.delete", "profile", name, scope=scope):
        path = await in_thread(service, _delete, service.mux.profiles, name, scope)
    return json_answer(ProfileChanged(profile=name, path=path))


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if PROFILE_NAME.fullmatch(name) is None:
        raise ValidationError([FieldError("name", name, PROFILE_NAMES)])
    return name


def _set(profiles: Profiles, name: str, fields: dict[str, Any], scope: Scope) -> str:
    check_wire_durations(fields)
    return str(profiles.set_keys(name, fields, scope=scope, replace=True))


def _delete(profiles: Profiles, name: str, scope: Scope | None) -> str:
    return str(profiles.delete(name, scope=scope))
