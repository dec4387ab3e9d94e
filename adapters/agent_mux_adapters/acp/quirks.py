"""Habits of ACP agents without an adapter of their own, and the settings that we request from them."""

import re
import signal
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.facts import InputRequested, Note
from agent_mux_adapters._dialects.acp import (
    AcpCall,
    AcpQuestion,
    AcpQuirks,
    AcpRequest,
    OpenedSession,
    ToolReader,
    default_settings,
    mode_request,
)
from agent_mux_adapters._dialects.choices import read_choices
from agent_mux_adapters._dialects.tolerant import rows, text

_MCP_TITLE = re.compile(r"(\S+) \((\S+) MCP Server\)")


class CommonAcpTools(ToolReader):
    """The meaning of tool calls, including those of agents derived from Gemini CLI such as Qwen Code."""

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Return the MCP server and its tool from the title, where the name does not contain them."""
        titled = _MCP_TITLE.match(call.first_title)
        by_title = (titled[2], titled[1]) if titled is not None and titled[2] in servers else None
        return super().mcp(call, servers) or by_title

    def question(self, request_id: str, asked: AcpCall, options: Mapping[str, str]) -> AcpQuestion | None:
        """Return the questions that Qwen Code sends as permission requests; it reads `answers` beside the outcome."""
        questions = rows(asked.meta.get("qwenQuestions"))
        allowed = next(iter(options), None)  # "Submit"; the other option is "Cancel"
        if not questions or allowed is None:
            return None
        ids = [f"{request_id}/{number}" for number in range(len(questions))]

        def reply(answers: Mapping[str, Any]) -> Mapping[str, Any]:
            outcome = {"outcome": "selected", "optionId": allowed}
            return {"outcome": outcome, "answers": {str(ids.index(key)): value for key, value in answers.items()}}

        return AcpQuestion(asked=tuple(map(_input_asked, ids, questions)), reply=reply)


def _input_asked(request_id: str, question: Mapping[str, Any]) -> InputRequested:
    context, labels = read_choices(question)
    return InputRequested(request_id, text(question.get("question")), context, labels)


# Common names of modes; the first one that the agent offers is used. A mode with another name is not changed.
_ASKING = ("default", "ask", "manual", "normal", "confirm")
_FREE = ("yolo", "bypassPermissions", "auto-approve", "dont_ask", "dontAsk")
_EASY = (*_FREE, "accept-edits", "acceptEdits", "accept_edits", "auto", "auto-edit", "autoEdit", "auto_edit")


def settings(context: CodecContext, opened: OpenedSession) -> Sequence[AcpRequest | Note]:
    """Return the requests for model, effort and mode.

    The mode is one that asks for approval, or in mode `yolo` one that does not.
    """
    if context.approval_mode == "yolo":
        mode = mode_request(opened, to=_FREE)
    else:
        mode = mode_request(opened, to=_ASKING, out_of=_EASY)
    return [*default_settings(context, opened), *([mode] if mode is not None else [])]


# The MCP SDK of most agents keeps their process alive while a server is connected.
QUIRKS = AcpQuirks(tools=CommonAcpTools(), settings=settings, signal_with_servers=signal.SIGTERM)
