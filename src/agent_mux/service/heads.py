"""HEAD: what GET answers, without the body, which the server leaves out. Source: RFC 9110, section 9.3.2; ASGI.

Not for streams: whether there is something to read, only reading tells.
"""

from fastapi import APIRouter
from fastapi.routing import APIRoute

from agent_mux.service.openapi.describing import DESCRIBED


def heads_of(router: APIRouter) -> APIRouter:
    """A route for HEAD beside each one for GET. The OpenAPI document leaves them out: they say nothing of their own."""
    made = APIRouter()
    for route in router.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not _is_stream(route.name):
            made.add_api_route(
                route.path,
                route.endpoint,
                methods=["HEAD"],
                name=route.name,
                include_in_schema=False,
                route_class_override=type(route),
            )
    return made


def _is_stream(name: str) -> bool:
    said = DESCRIBED.get(name)
    return said is not None and said.is_stream
