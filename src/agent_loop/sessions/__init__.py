"""Persistent sessions: their data, recording, stores, resuming, forking and replay."""

from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.ids import LoopName, config_segment, loop_id, new_id, next_number, parse_loop_id
from agent_loop.sessions.memory_store import MemorySessionStore
from agent_loop.sessions.recorder import FormationPolicy, Inactivity, PerSessionId, SessionRecorder
from agent_loop.sessions.resume import fork, is_idle, repair_session, resume
from agent_loop.sessions.session import Formation, LoopConfig, LoopRecord, RecordStatus, Session
from agent_loop.sessions.store import SessionStore

__all__ = [
    "FileSessionStore",
    "Formation",
    "FormationPolicy",
    "Inactivity",
    "LoopConfig",
    "LoopName",
    "LoopRecord",
    "MemorySessionStore",
    "PerSessionId",
    "RecordStatus",
    "Session",
    "SessionRecorder",
    "SessionStore",
    "config_segment",
    "fork",
    "is_idle",
    "loop_id",
    "new_id",
    "next_number",
    "parse_loop_id",
    "repair_session",
    "resume",
]
