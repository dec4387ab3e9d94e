"""What both sides of a conversation know about its session."""

from typing import Any

from agent_mux.adapter import CodecContext
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks
from agent_mux_adapters._dialects.acp.usage import Account
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient
from agent_mux_adapters._dialects.tolerant import mapping, text

OPENING = frozenset({"session/new", "session/load", "session/resume", "session/fork"})


class Session:
    """The session of the run, from its opening on."""

    def __init__(self, context: CodecContext, quirks: AcpQuirks) -> None:
        self.context = context
        self.quirks = quirks
        self.rpc = JsonRpcClient(with_version=True)
        self.account = Account(is_cumulative=quirks.usage_is_cumulative)
        self.is_observed = context.prompt is None
        """Somebody else speaks with the agent; we say nothing."""
        self.id: str | None = None
        """None: it is not open yet."""
        self.capabilities: Any = {}
        """`agentCapabilities`."""
        self.prompts = 0
        """Prompts under way: asked, and not answered yet."""
        self.in_history = False
        """It is open, but the agent still tells what was before."""
        self.is_seen_from_both_sides = False
        """We speak, or see what another client says; else only the agent's side is there to read."""
        self.is_stopping = False
        """The prompt under way was cancelled."""
        self._history: dict[str, int] = {}
        self._last: dict[str, str] = {}

    @property
    def in_turn(self) -> bool:
        """The agent works on a prompt."""
        return self.prompts > 0 or not self.is_seen_from_both_sides

    @property
    def is_live(self) -> bool:
        """What the agent tells now belongs to this run."""
        return self.id is not None and not self.in_history and self.in_turn

    def saw_before(self, session_id: str, kind: str, message_id: Any) -> None:
        """An update that repeats what was before this run: one more turn, if a user's message begins."""
        this = f"{kind}:{text(message_id)}"
        if kind == "user_message_chunk" and self._last.get(session_id) != this:
            self._history[session_id] = self._history.get(session_id, 0) + 1
        self._last[session_id] = this

    def turns_before(self, session_id: str) -> int:
        """How many turns the session had before this run, as far as they were told."""
        return self._history.get(session_id, 0)

    def any_before(self) -> str | None:
        """A session whose history is being told."""
        return next(iter(self._history), None)

    def session_of(self, params: Any, result: Any) -> str:
        """The session that a request opened: named by the answer, or by the request."""
        return text(mapping(result).get("sessionId")) or text(mapping(params).get("sessionId"))
