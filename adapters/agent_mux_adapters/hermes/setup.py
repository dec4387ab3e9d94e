"""From an opened session to one that takes the run's first prompt.

The gateway opens a session at once and builds its agent afterwards; only the agent's `session.info` says with which
model, and whether there are MCP servers that nobody has begun to start.
"""

from collections import deque
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from agent_mux.adapter import CodecContext
from agent_mux.facts import SessionKnown
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

EFFORTS = {"low": "low", "medium": "medium", "high": "high", "max": "max"}
COLUMNS = 80
Request = tuple[str, dict[str, Any]]
_IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}


def mime_type_of(name: str) -> str:
    """The type of an image, by its name."""
    return _IMAGES.get(PurePath(name).suffix.lower(), "image/png")


def is_image_name(name: str) -> bool:
    """Hermes takes images of these kinds."""
    return PurePath(name).suffix.lower() in _IMAGES


def is_plain_model_name(model: str) -> bool:
    """Nothing in it could be taken for a flag of Hermes' `/model` command, which takes both in one text."""
    return not any(letter.isspace() for letter in model) and not model.startswith(("-", "—"))


def prompts_in(answer: Mapping[str, Any]) -> int:
    """How many turns a stored session has. Hermes' own remarks stand among the prompts."""
    said = [text(message.get("text")) for message in rows(answer.get("messages")) if message.get("role") == "user"]
    return sum(not prompt.startswith("[System: ") for prompt in said)


def opening_request(context: CodecContext) -> Request:
    """How the session is opened. A fork is first resumed."""
    before = context.session_id or context.fork_session_id
    if before is not None:
        return "session.resume", {"session_id": before, "cols": COLUMNS}
    params: dict[str, Any] = {"cwd": context.cwd, "cols": COLUMNS}
    if context.model is not None:
        params["model"] = context.model
    if context.thinking_effort is not None:
        params["reasoning_effort"] = EFFORTS[context.thinking_effort]
    return "session.create", params


class _Agent(msgspec.Struct, frozen=True, gc=False):
    stored: str
    model: str
    has_waiting_servers: bool


class Setup:
    """What is still to be done before the first prompt."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._agents: dict[str, _Agent] = {}
        """By live session: the agents that are built. A fork's is told before the fork is."""
        self._todo: deque[Request] | None = None
        self._doing: str | None = None
        self.prior_turns = 0
        self._parent: str | None = None
        self._resumed = False
        self._stored = ""
        self._model = ""
        self._place = ""

    # -- what is known

    def opened(self, method: str, answer: Mapping[str, Any], params: Mapping[str, Any]) -> SessionKnown:
        """The answer to the request that opened the session."""
        session, info = text(answer.get("session_id")), mapping(answer.get("info"))
        agent = self._agents.get(session)
        self._resumed = method == "session.resume"
        if self._resumed:
            self.prior_turns = prompts_in(answer)
        self._parent = text(answer.get("parent")) or None if method == "session.branch" else None
        told = text(answer.get("stored_session_id")) or text(answer.get("resumed"))
        self._stored = (
            told
            or (agent.stored if agent is not None else "")
            or (text(params.get("session_id")) if self._resumed else "")
        )
        self._place = text(info.get("cwd"))
        self._model = text(info.get("model")) or (agent.model if agent is not None else "")
        return self.known

    def seen(self, session: str, payload: Mapping[str, Any]) -> SessionKnown:
        """`session.info`. Before the agent is built it tells of the place only."""
        if payload.get("lazy") is not True:
            waiting = any(server.get("status") == "configured" for server in rows(payload.get("mcp_servers")))
            stored = text(payload.get("stored_session_id"))
            self._agents[session] = _Agent(stored, text(payload.get("model")), waiting)
            self._stored = self._stored or stored
        self._model = text(payload.get("model")) or self._model
        return self.known

    @property
    def known(self) -> SessionKnown:
        """The session, as far as it is known."""
        return SessionKnown(self._stored, self._resumed, self._parent, self.prior_turns, self._model or None)

    # -- what is to be done

    def early(self, session: str) -> tuple[Request, ...]:
        """Said at once: a session that was stored remembers another place."""
        is_elsewhere = self._resumed and self._place != self._context.cwd
        if not (is_elsewhere or self._parent is not None) or not self._context.cwd:
            return ()
        return (("session.cwd.set", {"session_id": session, "cwd": self._context.cwd}),)

    def is_built(self, session: str) -> bool:
        """The agent is there."""
        return session in self._agents

    def is_ready(self, session: str) -> bool:
        """The agent is built, and all was done."""
        agent = self._agents.get(session)
        if agent is None or self._doing is not None:
            return False
        if self._todo is None:
            self._todo = deque(self._requests(session, agent))
        return not self._todo

    def next(self, session: str) -> Request | None:
        """What is to be asked now."""
        if self._doing is not None or not self._todo or session not in self._agents:
            return None
        request = self._todo.popleft()
        self._doing = request[0]
        return request

    def done(self, method: str) -> None:
        """A request was answered, or refused."""
        if method == self._doing:
            self._doing = None

    def _requests(self, session: str, agent: _Agent) -> list[Request]:
        there = {"session_id": session}
        requests: list[Request] = []
        if agent.has_waiting_servers:
            requests.append(("reload.mcp", {**there, "confirm": True}))
        model = self._context.model
        is_stored = self._resumed or self._parent is not None
        if is_stored and model is not None and model != agent.model and is_plain_model_name(model):
            requests.append(("config.set", {**there, "key": "model", "value": f"{model} --session"}))
        return requests + [_image(there, place) for place in self._context.images]


def _image(there: Mapping[str, Any], place: str) -> Request:
    if place.startswith("data:"):
        return "image.attach_bytes", {**there, "content_base64": place}
    return "image.attach", {**there, "path": place}
