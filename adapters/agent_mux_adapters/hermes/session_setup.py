"""Preparation of a session: from opening it to its first prompt.

The gateway opens a session at once and builds its agent afterwards. Only the agent's `session.info` reports the model,
and whether there are MCP servers that were configured but not started.
"""

from collections import deque
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.facts import SessionKnown
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

_COLUMNS = 80
Request = tuple[str, dict[str, Any]]
_IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}


def mime_type_of(name: str) -> str:
    """Return the MIME type of an image by its file name; PNG when the suffix is unknown."""
    return _IMAGE_TYPES.get(PurePath(name).suffix.lower(), "image/png")


def is_image_name(name: str) -> bool:
    """Return whether the file name has a suffix of an image that Hermes accepts."""
    return PurePath(name).suffix.lower() in _IMAGE_TYPES


def is_plain_model_name(model: str) -> bool:
    """Return whether Hermes' `/model` command, which takes name and flags in one text, would see only a name."""
    return not any(letter.isspace() for letter in model) and not model.startswith(("-", "—"))


def count_prompts(answer: Mapping[str, Any]) -> int:
    """Return the number of prompts in a resumed session, without the system remarks that Hermes stores among them."""
    prompts = [text(message.get("text")) for message in rows(answer.get("messages")) if message.get("role") == "user"]
    return sum(not prompt.startswith("[System: ") for prompt in prompts)


def opening_request(context: CodecContext) -> Request:
    """Return the request that opens the session. A fork resumes its original first."""
    stored = context.session_id or context.fork_session_id
    if stored is not None:
        return "session.resume", {"session_id": stored, "cols": _COLUMNS}
    params: dict[str, Any] = {"cwd": context.cwd, "cols": _COLUMNS}
    if context.model is not None:
        params["model"] = context.model
    if context.thinking_effort is not None:
        params["reasoning_effort"] = context.thinking_effort
    return "session.create", params


class _BuiltAgent(msgspec.Struct, frozen=True, gc=False):
    stored_session: str
    model: str
    has_waiting_servers: bool
    """Whether MCP servers are configured and were not started."""


class SessionSetup:
    """Facts about the opened session, and the requests that are due before its first prompt."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context
        self._agents: dict[str, _BuiltAgent] = {}
        """By live session. The agent of a fork may be reported before the fork itself."""
        self._pending: deque[Request] | None = None
        """None until the agent is built."""
        self._method_in_progress: str | None = None
        self.prior_turns = 0
        """Prompts that the session had before this run."""
        self._parent: str | None = None
        self._is_resumed = False
        self._stored_session = ""
        self._model = ""
        self._cwd = ""

    # -- what the gateway reports

    def opened(self, method: str, answer: Mapping[str, Any], params: Mapping[str, Any]) -> SessionKnown:
        """Read the answer to the request that opened the session."""
        session, info = text(answer.get("session_id")), mapping(answer.get("info"))
        agent = self._agents.get(session)
        self._is_resumed = method == "session.resume"
        if self._is_resumed:
            self.prior_turns = count_prompts(answer)
        self._parent = text(answer.get("parent")) or None if method == "session.branch" else None
        self._stored_session = (
            text(answer.get("stored_session_id"))
            or text(answer.get("resumed"))
            or (agent.stored_session if agent is not None else "")
            or (text(params.get("session_id")) if self._is_resumed else "")
        )
        self._cwd = text(info.get("cwd"))
        self._model = text(info.get("model")) or (agent.model if agent is not None else "")
        return self.known

    def info(self, session: str, payload: Mapping[str, Any]) -> SessionKnown:
        """Read `session.info`. Before the agent is built (`lazy`), only the directory in it is final."""
        if payload.get("lazy") is not True:
            waiting = any(server.get("status") == "configured" for server in rows(payload.get("mcp_servers")))
            stored_session = text(payload.get("stored_session_id"))
            self._agents[session] = _BuiltAgent(stored_session, text(payload.get("model")), waiting)
            self._stored_session = self._stored_session or stored_session
        self._model = text(payload.get("model")) or self._model
        return self.known

    @property
    def known(self) -> SessionKnown:
        """The session, as far as the gateway has reported it."""
        return SessionKnown(self._stored_session, self._is_resumed, self._parent, self.prior_turns, self._model or None)

    # -- requests before the first prompt

    def immediate_requests(self, session: str) -> tuple[Request, ...]:
        """Return the requests that do not wait for the agent: the directory, as a stored session keeps its old one."""
        is_elsewhere = self._is_resumed and self._cwd != self._context.cwd
        if not (is_elsewhere or self._parent is not None) or not self._context.cwd:
            return ()
        return (("session.cwd.set", {"session_id": session, "cwd": self._context.cwd}),)

    def is_built(self, session: str) -> bool:
        """Return whether the agent of this live session is built."""
        return session in self._agents

    def is_ready(self, session: str) -> bool:
        """Return whether the agent is built and no request is due or in progress."""
        agent = self._agents.get(session)
        if agent is None or self._method_in_progress is not None:
            return False
        if self._pending is None:
            self._pending = deque(self._requests(session, agent))
        return not self._pending

    def next_request(self, session: str) -> Request | None:
        """Return the next request and mark it as in progress; None when none may be sent now."""
        if self._method_in_progress is not None or not self._pending or session not in self._agents:
            return None
        request = self._pending.popleft()
        self._method_in_progress = request[0]
        return request

    def done(self, method: str) -> None:
        """Note that a request was answered or refused."""
        if method == self._method_in_progress:
            self._method_in_progress = None

    def _requests(self, session: str, agent: _BuiltAgent) -> list[Request]:
        base = {"session_id": session}
        requests: list[Request] = []
        if agent.has_waiting_servers:
            requests.append(("reload.mcp", {**base, "confirm": True}))
        model = self._context.model
        is_stored = self._is_resumed or self._parent is not None
        if is_stored and model is not None and model != agent.model and is_plain_model_name(model):
            requests.append(("config.set", {**base, "key": "model", "value": f"{model} --session"}))
        return requests + [_attach_image(base, image) for image in self._context.images]


def _attach_image(base: Mapping[str, Any], image: str) -> Request:
    if image.startswith("data:"):
        return "image.attach_bytes", {**base, "content_base64": image}
    return "image.attach", {**base, "path": image}
