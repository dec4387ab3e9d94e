"""`/v1/profiles`: named run options."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from agent_mux.api.profiles import ProfileChanged, ProfileView, profile_view, profile_views
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES
from agent_mux.service.openapi.descriptions import BodySpec, ResponseSpec, SchemaRef, described
from agent_mux.service.routes.requests import CurrentService, RawPathRoute, json_answer, json_body
from agent_mux.service.service import in_thread
from agent_mux.settings.profiles import Profiles, Scope

router = APIRouter(prefix="/v1/profiles", tags=["profiles"], route_class=RawPathRoute)
Name = Annotated[str, Path(pattern=f"^{PROFILE_NAME.pattern}$", description=f"Profile name: {PROFILE_NAMES}.")]


@router.get("")
@described(ResponseSpec(list[ProfileView]))
async def list_profiles(service: CurrentService) -> Response:
    """List all profiles by name: those of the project that the service runs in, and the global ones."""
    return json_answer(await in_thread(service, profile_views, service.mux.profiles))


@router.get("/{name}")
@described(ResponseSpec(ProfileView), errors=("VALIDATION_ERROR", "PROFILE_NOT_FOUND", "CONFIG_ERROR"))
async def get_profile(name: Name, service: CurrentService) -> Response:
    """Get one profile, without its secrets, and which file each option comes from."""
    return json_answer(profile_view(await in_thread(service, service.mux.profiles.get, name)))


@router.put("/{name}")
@described(
    ResponseSpec(
        ProfileChanged,
        description="The profile was written.",
        links={
            "get_profile": {"name": "$response.body#/profile"},
            "delete_profile": {"name": "$response.body#/profile"},
        },
    ),
    body=BodySpec(
        shape=SchemaRef("ProfileFields"),
        is_required=False,
        examples={"quick": {"agent": "replay", "timeout": 60_000, "tags": ["review"]}},
    ),
    errors=("CONFIG_ERROR", "CONFIG_LOCK_ERROR"),
    parameters={"name": "review"},
)
async def set_profile(
    name: Name,
    request: Request,
    service: CurrentService,
    scope: Annotated[Scope, Query(description="Where to write the profile.")] = "global",
) -> Response:
    """Create or replace a profile. Keys and units are those of profile files."""
    fields = await json_body(request, dict[str, Any])
    path = await in_thread(service, _set, service.mux.profiles, name, fields, scope)
    return json_answer(ProfileChanged(profile=name, scope=scope, path=path))


@router.delete("/{name}")
@described(
    ResponseSpec(ProfileChanged, description="The profile was deleted."),
    errors=("PROFILE_NOT_FOUND", "CONFIG_ERROR", "CONFIG_LOCK_ERROR"),
)
async def delete_profile(
    name: Name,
    service: CurrentService,
    scope: Annotated[Scope | None, Query(description="Which profile to delete if both scopes have it.")] = None,
) -> Response:
    """Delete a profile. `scope` is required when both the project and the global scope have it."""
    path = await in_thread(service, _delete, service.mux.profiles, name, scope)
    return json_answer(ProfileChanged(profile=name, path=path))


def _set(profiles: Profiles, name: str, fields: dict[str, Any], scope: Scope) -> str:
    return str(profiles.set_keys(name, fields, scope=scope, replace=True))


def _delete(profiles: Profiles, name: str, scope: Scope | None) -> str:
    return str(profiles.delete(name, scope=scope))
