"""What is done with an agent of which nothing is known."""

import signal
from collections.abc import Sequence

from agent_mux.adapter import CodecContext
from agent_mux.facts import Note
from agent_mux_adapters._dialects.acp import AcpQuirks, AcpRequest, OpenedSession, default_settings, mode_request
from agent_mux_adapters.acp.tools import CommonTools

# Names of modes that are common among agents, the first that is offered counts. A mode that has none of them is left.
_ASKING = ("default", "ask", "manual", "normal", "confirm")
_FREE = ("yolo", "bypassPermissions", "auto-approve", "dont_ask", "dontAsk")
_EASY = (*_FREE, "accept-edits", "acceptEdits", "accept_edits", "auto", "auto-edit", "autoEdit", "auto_edit")


def settings(context: CodecContext, opened: OpenedSession) -> Sequence[AcpRequest | Note]:
    """Model, effort, and the mode that asks where somebody is to be asked, or the one that does not."""
    if context.approval_mode == "yolo":
        mode = mode_request(opened, to=_FREE)
    else:
        mode = mode_request(opened, to=_ASKING, out_of=_EASY)
    return [*default_settings(context, opened), *([mode] if mode is not None else [])]


# The SDK for MCP that most agents use keeps their process alive as long as a server is connected.
QUIRKS = AcpQuirks(tools=CommonTools(), settings=settings, signal_with_servers=signal.SIGTERM)
