"""What the assembler knows about its run: plain data, handed in and journaled."""

import msgspec

from agent_mux.sdk.facts import Capability
from agent_mux.sdk.models import Price


class StreamContext(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that shape the event stream of one run."""

    run_id: str
    agent: str
    display_name: str = ""
    cwd: str = ""
    streams: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
    """What the native protocol delivers in fragments."""
    buffered: bool = False
    """`stream=False`: every message, thought and tool input comes whole."""
    show_approvals: bool = True
    """False in plain `yolo` mode: nothing is asked, so nothing is shown."""
    show_requests: bool = True
    """False in `deny` mode: only the denial is shown."""
    permission_pending: bool = False
    """A tool may still be denied after it is ready: its command has not started before there is evidence."""
    interactive: bool = False
    """The run goes on after a failed or interrupted turn."""
    include_subagent_events: bool = False
    resumed: bool = False
    forked_from: str | None = None
    max_turns: int = 0
    model: str | None = None
    """What was asked for; the agent may say that it uses another one."""
    prices: dict[str, Price] = {}
    """By model, for what the agent does not price itself."""
    auth_guidance: str = ""
    """What a person does about an authentication failure of this agent."""
