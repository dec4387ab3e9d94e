"""Which session of the agent an editor means.

An editor wants the id of a session before the agent has begun it, so a new session gets one of ours: a ULID, which is
the id of its first run, and a tag of all of them. That finds the agent's own id again: in the tags of stored sessions
(they come of the index of runs), or in the recording of the first run, where nobody lived to write the index. What the
editor got from `session/list` may be the agent's own id.
"""

from pathlib import Path

from agent_mux.adapter import Codec, CodecContext
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.options import RUN_ID
from agent_mux.registry import AdapterRegistry
from agent_mux.run.derive import JournalEvents
from agent_mux.run.plan import find_protocol
from agent_mux.sessions.filter import SessionFilter
from agent_mux.sessions.library import Known
from agent_mux.sessions.summary import SessionSummary

_TAG = "acp-session:"


def tag_of(session_id: str) -> str:
    """The tag of all runs of a session of the editor."""
    return f"{_TAG}{session_id}"


def editors_id(summary: SessionSummary) -> str:
    """The id that the editor knows a stored session by: ours, where it is one of ours."""
    tagged = [tag.removeprefix(_TAG) for tag in summary.tags if tag.startswith(_TAG)]
    return tagged[-1] if tagged else summary.native_id


def find_stored(mux: AgentMux, agent: str, session_id: str) -> Known:
    """The stored session that an editor means. Blocking.

    Raises SESSION_NOT_FOUND; CAPABILITY_ERROR where the agent's sessions cannot be read.
    """
    sessions = mux.sessions
    tagged = SessionFilter(agent=agent, tags=(tag_of(session_id),))
    found = sorted(sessions.known(tagged), key=lambda known: known.made.summary.updated_at)
    if found:
        return found[-1]
    recorded = _recorded(mux.journals / f"{session_id}.journal", mux.adapters) if RUN_ID.fullmatch(session_id) else None
    return sessions.find(recorded or session_id, SessionFilter(agent=agent))


def find_native(mux: AgentMux, agent: str, session_id: str) -> str:
    """The agent's own id. Blocking. Where its sessions cannot be read, what the editor says is taken for it."""
    try:
        return find_stored(mux, agent, session_id).made.summary.native_id
    except AgentMuxError as error:
        if error.code != "CAPABILITY_ERROR":
            raise
    path = mux.journals / f"{session_id}.journal"
    return (_recorded(path, mux.adapters) if RUN_ID.fullmatch(session_id) else None) or session_id


def _recorded(path: Path, adapters: AdapterRegistry) -> str | None:
    """The session of a recorded run; None where there is no recording, or the agent never said."""

    def make_codec(context: CodecContext) -> Codec:
        return find_protocol(adapters.get(context.agent), context.protocol, adapters.get).codec(context)

    try:
        journal = JournalEvents(path, make_codec)
        while journal.next_batch() is not None:
            if journal.normalizer.assembler.session_id is not None:
                return journal.normalizer.assembler.session_id
    except (OSError, ValueError, AgentMuxError):
        return None
    return None
