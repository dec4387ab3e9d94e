"""Tools of HTTP services that an OpenAPI document describes: one tool for each operation."""

from agent_loop.openapi.adapter import openapi_tools_from_file, openapi_tools_from_text, openapi_tools_from_url
from agent_loop.openapi.config import ApiKeyAuth, BasicAuth, BearerAuth, OpenApiAuth, OpenApiConfig, OperationFilter
from agent_loop.openapi.tool import OpenApiTool

__all__ = [
    "ApiKeyAuth",
    "BasicAuth",
    "BearerAuth",
    "OpenApiAuth",
    "OpenApiConfig",
    "OpenApiTool",
    "OperationFilter",
    "openapi_tools_from_file",
    "openapi_tools_from_text",
    "openapi_tools_from_url",
]
