"""The response to `initialize`: the capabilities of an agent in terms of the protocol."""

from acp.schema import (
    AgentCapabilities,
    AuthMethodAgent,
    Implementation,
    InitializeResponse,
    McpCapabilities,
    PromptCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from agent_mux._util.version import __version__
from agent_mux.sdk.adapter import Adapter

PROTOCOL_VERSION = 1
LOGIN_METHOD = "agent-login"
"""The id of the only authentication method: the agent's own login, outside of the editor."""


def initialize_response(adapter: Adapter) -> InitializeResponse:
    """Build the response to `initialize` from the adapter's tested capabilities."""
    can = adapter.capabilities
    is_readable = adapter.sessions() is not None
    return InitializeResponse(
        protocol_version=PROTOCOL_VERSION,
        agent_info=Implementation(
            name=f"amux-{adapter.agent}", title=f"{adapter.display_name} (agent-mux)", version=__version__
        ),
        auth_methods=[_login_method(adapter)],
        agent_capabilities=AgentCapabilities(
            load_session=can.can_resume and is_readable,
            prompt_capabilities=PromptCapabilities(image=can.image_input, embedded_context=True),
            mcp_capabilities=McpCapabilities(http=can.mcp, sse=can.mcp),
            session_capabilities=SessionCapabilities(
                list=SessionListCapabilities() if is_readable else None,
                resume=SessionResumeCapabilities() if can.can_resume else None,
                fork=SessionForkCapabilities() if can.can_fork else None,
                close=SessionCloseCapabilities(),
            ),
        ),
    )


def _login_method(adapter: Adapter) -> AuthMethodAgent:
    return AuthMethodAgent(id=LOGIN_METHOD, name=f"Log in to {adapter.display_name}", description=adapter.auth_guidance)
