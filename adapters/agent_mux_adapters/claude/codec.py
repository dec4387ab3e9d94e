"""Claude Code's stream-json, one-shot and two-way."""

from agent_mux.adapter import CodecContext
from agent_mux_adapters._dialects.stream_json.approvals import StreamJsonApprovals
from agent_mux_adapters._dialects.stream_json.codec import StreamJsonCodec, is_live
from agent_mux_adapters.claude.conversation import Conversation
from agent_mux_adapters.claude.permissions import for_this_session
from agent_mux_adapters.claude.reader import Reader
from agent_mux_adapters.claude.table import TOOLS


class ClaudeCodec(StreamJsonCodec):
    """One run of Claude Code. See `agent_mux.adapter.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        conversation = Conversation(keep_open=context.interactive)
        requests = StreamJsonApprovals(TOOLS, live=is_live(context), remember=for_this_session)
        super().__init__(context, Reader(context, conversation), requests, conversation)
