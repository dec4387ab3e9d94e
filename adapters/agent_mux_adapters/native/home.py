"""What the embedded agent keeps besides its sessions: nothing but what the environment says."""

from agent_mux.auth.methods import AgentAuth, AuthMethod, SetupStep
from agent_mux.home import AgentHome

AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="api_key",
            display_name="the API key of a provider",
            variables=(
                "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "AZURE_OPENAI_API_KEY",
                "OPENAI_COMPATIBLE_API_KEY",
            ),
        ),
    ),
    steps=(
        SetupStep(text="Set the API key of a provider, for example Anthropic.", variable="ANTHROPIC_API_KEY"),
        SetupStep(text="Or of another one.", variable="OPENAI_API_KEY"),
    ),
)


HOME = AgentHome(auth=AUTH)
