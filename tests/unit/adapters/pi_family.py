"""Messages of pi and omp, and a codec of their rpc mode under test."""

from typing import Any

from tests.unit.adapters import codec_conversation
from tests.unit.adapters.codec_conversation import codec_of

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import CodecOutput

# -- messages of the agent


def update(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a delta of the model's message."""
    return {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": index, **fields}}


def answer(*blocks: Any, **fields: Any) -> dict[str, Any]:
    """Return the complete message of the model; each block is a content block or its text."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": "stop", **fields}}


def failed(message: str, **fields: Any) -> dict[str, Any]:
    """Return the message of a failed model call."""
    return answer(stopReason="error", errorMessage=message, **fields)


def call_block(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(shown: str, **details: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": shown}], **({"details": details} if details else {})}


def tool_start(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": arguments}


def tool_update(call_id: str, name: str, partial: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_execution_update", "toolCallId": call_id, "toolName": name, "partialResult": partial}


def tool_end(call_id: str, name: str, outcome: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    line = {"type": "tool_execution_end", "toolCallId": call_id, "toolName": name, "result": outcome}
    return {**line, "isError": is_error}


AGENT_START = {"type": "agent_start"}
SETTLED = {"type": "agent_settled"}


def agent_end(**fields: Any) -> dict[str, Any]:
    """Return the end of the agent's loop; `fields` are `willRetry` since pi 0.87, `isTerminal` in omp."""
    return {"type": "agent_end", "messages": [], **fields}


class PiConversation(codec_conversation.CodecConversation):
    """A codec of a live run in rpc mode, and an agent whose messages the test provides."""

    def __init__(self, adapter: Adapter, **context: Any) -> None:
        super().__init__(codec_of(adapter, "rpc", **{"prompt": "hello", **context}))

    def receive_response(self, request_id: str, command: str, **data: Any) -> list[CodecOutput]:
        line = {"id": request_id, "type": "response", "command": command, "success": True}
        return self.receive({**line, **({"data": data} if data else {})})

    def receive_error(self, request_id: str | None, command: str, error: str) -> list[CodecOutput]:
        line = {"type": "response", "command": command, "success": False, "error": error}
        return self.receive(line if request_id is None else {"id": request_id, **line})

    def receive_request(self, key: str, method: str, **fields: Any) -> list[CodecOutput]:
        return self.receive({"type": "extension_ui_request", "id": key, "method": method, **fields})
