"""Who can answer the requests of a run, and which requests somebody has seen.

A request that nobody can answer is declined at once; one that nobody has seen for a while is logged. See
docs/spec/run-api.md, section 2.5.
"""

import anyio

from agent_mux.assembler import OpenInteraction
from agent_mux.run.callbacks import OPTION_OF, InteractionPort
from agent_mux.run.log import RunLog
from agent_mux.run.readers import REQUEST_EVENTS, EventWindow
from agent_mux.sdk.facts import ApprovalRequested

UNSEEN_AFTER = 5.0  # seconds
NOBODY = "nobody could answer: this run has no callback, handler, reader or control peer for the request"
"""The reason for which a request is declined that nobody can answer."""


class Audience:
    """The handlers, readers and clients of one run that can answer its requests."""

    def __init__(self, port: InteractionPort, window: EventWindow, log: RunLog) -> None:
        self._port = port
        self._window = window
        self._log = log

    def is_present(self, request: OpenInteraction) -> bool:
        """Return whether somebody can answer this request, now or later."""
        channel, listeners = self._port.channel, self._port.listeners
        if channel.is_kept_open or channel.listeners() or channel.is_polled:
            return True
        has_handler = listeners.has_handlers(REQUEST_EVENTS[request.kind]) or self._is_shown(request)
        return has_handler or self._window.has_readers

    def _is_shown(self, request: OpenInteraction) -> bool:
        shown = request.interaction_id
        return shown in self._port.channel.seen or shown in self._port.listeners.shown_requests

    async def warn_if_unseen(self, request: OpenInteraction) -> None:
        """Log a request that is pending after `UNSEEN_AFTER` seconds, and that nobody has seen."""
        number = self._window.number_of(request.interaction_id)
        await anyio.sleep(UNSEEN_AFTER)
        is_seen = self._is_shown(request) or self._window.read_until > number
        if not is_seen and self._port.is_pending(request):
            self._warn("interaction_unseen", request, f"nobody has seen it for {UNSEEN_AFTER:g} s; the agent waits")

    def report_declined(self, request: OpenInteraction) -> None:
        """Report that a request is declined because nobody can answer it."""
        self._port.note(f"{request.interaction_id} is declined: {NOBODY}; {_remedy(request)}")
        self._warn("interaction_declined", request, NOBODY)

    def _warn(self, entry: str, request: OpenInteraction, reason: str) -> None:
        run_id = self._port.run_id
        next_step = _remedy(request)
        if entry == "interaction_unseen":
            next_step = f"answer it with `amux runs watch {run_id}` or `amux runs answer {run_id}`; else {next_step}"
        asked = request.asked  # entries contain no commands and no questions
        self._log.warn(
            entry,
            kind=request.kind,
            interaction_id=request.interaction_id,
            tool=asked.tool_name if isinstance(asked, ApprovalRequested) else None,
            risk=asked.risk if isinstance(asked, ApprovalRequested) else None,
            reason=reason,
            next_step=next_step,
        )


def _remedy(request: OpenInteraction) -> str:
    """Return what to pass to a run so that requests like this one are answered."""
    option = OPTION_OF[request.kind]
    if request.kind == "approval":
        return f"pass {option}=, approval_mode= or policy=, or read the events of the run"
    return f"pass {option}=, or read the events of the run"
