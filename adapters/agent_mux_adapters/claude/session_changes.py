"""How Claude Code changes its stored sessions: control requests to `claude -p`, which resumes the session.

Measured with 2.1.330.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.session_changes import (
    ReceiveMessage,
    RewindOutcome,
    RewindRequest,
    SendMessage,
    SessionChangeRefusedError,
    SessionCommands,
    SessionSteps,
    StartProgram,
    StoredSessionRef,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.claude.argv import FILE_CHECKPOINTS


def _resume(session: StoredSessionRef) -> SessionSteps[None]:
    argv = (
        session.executable, "-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose",
        f"--resume={session.native_id}",
    )  # fmt: skip
    yield StartProgram(argv)
    yield from _request("initialize", {})


def _request(subtype: str, fields: Mapping[str, Any]) -> SessionSteps[Mapping[str, Any]]:
    """Send a control request and return its response."""
    yield SendMessage({"type": "control_request", "request_id": subtype, "request": {"subtype": subtype, **fields}})
    while True:
        response = mapping((yield ReceiveMessage()).get("response"))
        if response.get("request_id") != subtype:
            continue
        if response.get("subtype") != "success":
            raise SessionChangeRefusedError(f"{subtype}: {text(response.get('error'))}")
        return mapping(response.get("response"))


def _rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
    yield from _resume(session)
    yield from _request("rename_session", {"title": title, "source": "host"})


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    yield from _resume(session)
    files: tuple[str, ...] = ()
    if request.scope != "conversation":
        # Only the dry run reports the files.
        planned = yield from _rewind_files(request, is_dry_run=True)
        restored = yield from _rewind_files(request, is_dry_run=False)
        files = tuple(text(path) for path in planned.get("filesChanged") or restored.get("filesChanged") or ())
    if request.scope != "files":
        done = yield from _request("rewind_conversation", {"target_message_uuid": request.checkpoint})
        if done.get("rewound") is not True:
            raise SessionChangeRefusedError(
                f"rewind_conversation: {text(done.get('error')) or text(done.get('reason'))}"
            )
    return RewindOutcome(files=files)


def _rewind_files(request: RewindRequest, *, is_dry_run: bool) -> SessionSteps[Mapping[str, Any]]:
    response = yield from _request("rewind_files", {"user_message_id": request.checkpoint, "dry_run": is_dry_run})
    if response.get("canRewind") is False:
        raise SessionChangeRefusedError(f"rewind_files: {text(response.get('error'))}")
    return response


SESSIONS = SessionCommands(
    rename=_rename,
    rewind=_rewind,
    scopes=("both", "conversation", "files"),
    missing={"delete": "its `purge` deletes all sessions of a project only"},
    environment=FILE_CHECKPOINTS,
)
