"""AgentEvents as a native protocol, for any program that implements `docs/reference/agent-protocol.md`."""

from agent_mux_adapters._dialects.agent_events.codec import AgentEventsCodec
from agent_mux_adapters._dialects.agent_events.wire import START, is_agent_line, start_fields, start_message

__all__ = ["START", "AgentEventsCodec", "is_agent_line", "start_fields", "start_message"]
