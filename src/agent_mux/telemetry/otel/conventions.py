"""Attribute names of the GenAI semantic conventions, and our own.

They follow `gen-ai-agent-spans`, `gen-ai-spans` and `gen-ai-metrics` of open-telemetry/semantic-conventions-genai, a
standard that is still in development. Only this module depends on its names.
"""

from collections.abc import Mapping

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
AGENT_ID = "gen_ai.agent.id"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  # a name
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR = "error.type"

RUN_ID = "agent_mux.run.id"
EXIT_REASON = "agent_mux.exit_reason"
TURN = "agent_mux.turn.index"
STEP = "agent_mux.step.index"
COST = "agent_mux.cost.usd"
COST_SOURCE = "agent_mux.cost.source"
MCP_SERVER = "agent_mux.mcp.server"

INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that enables the capture of content."""
YES = frozenset({"true", "1", "span_only", "span_and_event"})
"""The values of `CAPTURE_CONTENT` that enable it, in lower case."""

PROVIDERS: Mapping[str, str] = {
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
}
"""The providers whose name in the conventions differs from `ModelCapabilities.provider`."""

TOKEN_BUCKETS = [4.0**power for power in range(14)]
OPERATION_BUCKETS = [0.01 * 2**power for power in range(14)]
"""Bounds of the histograms of model calls and tool calls, in seconds."""
AGENT_BUCKETS = [0.1 * 2**power for power in range(13)]
"""Bounds of the histogram of agents, in seconds."""
