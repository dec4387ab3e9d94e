"""Both sides of a run of pi or omp, as a test reads best: what we do, what the agent says, and what comes of it."""

from typing import Any

from tests.unit.adapters import talking
from tests.unit.adapters.talking import codec_of

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import Step

# -- what the agent says


def update(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    """A fragment of the model's message."""
    return {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": index, **fields}}


def answer(*blocks: Any, **fields: Any) -> dict[str, Any]:
    """The complete message of the model: blocks, or texts."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": "stop", **fields}}


def failed(message: str, **fields: Any) -> dict[str, Any]:
    """The message of a model call that failed."""
    return answer(stopReason="error", errorMessage=message, **fields)


def call_block(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(shown: str, **details: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": shown}], **({"details": details} if details else {})}


def starts(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": arguments}


def goes_on(call_id: str, name: str, so_far: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_execution_update", "toolCallId": call_id, "toolName": name, "partialResult": so_far}


def ends(call_id: str, name: str, came: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    line = {"type": "tool_execution_end", "toolCallId": call_id, "toolName": name, "result": came}
    return {**line, "isError": is_error}


BEGINS = {"type": "agent_start"}
SETTLED = {"type": "agent_settled"}


def agent_end(**fields: Any) -> dict[str, Any]:
    """`willRetry` since pi 0.87, `isTerminal` in omp."""
    return {"type": "agent_end", "messages": [], **fields}


class Talk(talking.Talk):
    """A live codec in rpc mode, and an agent that says what the test wants."""

    def __init__(self, adapter: Adapter, **context: Any) -> None:
        super().__init__(codec_of(adapter, "rpc", **{"prompt": "hello", **context}))

    def answers(self, request_id: str, command: str, **data: Any) -> list[Step]:
        line = {"id": request_id, "type": "response", "command": command, "success": True}
        return self.says({**line, **({"data": data} if data else {})})

    def refuses(self, request_id: str | None, command: str, error: str) -> list[Step]:
        line = {"type": "response", "command": command, "success": False, "error": error}
        return self.says(line if request_id is None else {"id": request_id, **line})

    def asks(self, key: str, method: str, **fields: Any) -> list[Step]:
        return self.says({"type": "extension_ui_request", "id": key, "method": method, **fields})
