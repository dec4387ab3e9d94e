"""Entries of the audit trail: who acts, and what each action records.

No entry has a secret or content of a run: of a prompt the number of characters, of an approval its id and its one-line
description with secrets hidden.
"""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from agent_mux._util.sanitize import to_json
from agent_mux._util.ulids import new_ulid
from agent_mux.redaction import redact_text
from agent_mux.service.clock import now_ms
from agent_mux.service.store.audit import AuditRow

Origin = Literal["http", "websocket", "cli", "retention"]
TargetType = Literal["run", "comparison", "webhook", "token", "profile", "session"]
Action = Literal[
    "run.start",
    "run.prompt",
    "run.steer",
    "run.queue",
    "run.approve",
    "run.deny",
    "run.answer",
    "run.approve_all",
    "run.deny_all",
    "run.set_model",
    "run.set_approval_mode",
    "run.interrupt",
    "run.pause",
    "run.resume",
    "run.close",
    "run.abort",
    "run.kill",
    "run.delete",
    "comparison.start",
    "comparison.resume",
    "comparison.stop",
    "comparison.apply",
    "comparison.delete",
    "webhook.create",
    "webhook.change",
    "webhook.delete",
    "webhook.rotate",
    "webhook.test",
    "profile.set",
    "profile.delete",
    "session.rename",
    "session.delete",
    "session.rewind",
    "token.create",
    "token.rotate",
    "token.revoke",
    "token.forget",
    "token.allow_none",
]
ACTIONS: tuple[Action, ...] = get_args(Action)
RESTRAINING: frozenset[Action] = frozenset(
    {
        "run.deny",
        "run.deny_all",
        "run.interrupt",
        "run.pause",
        "run.close",
        "run.abort",
        "run.kill",
        "comparison.stop",
    }
)
"""Actions that only restrain an agent: they are carried out even where nothing can be recorded."""
LONGEST_TEXT = 200  # characters of a text in a detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and from where."""

    name: str = ""
    """Name of the token; empty without one."""
    token_id: str = ""
    origin: Origin
    client: str = ""
    """Network address, or the user of the machine."""
    request_id: str = ""

    @classmethod
    def of_process(cls) -> Self:
        """Return the user of this process, for commands."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a uid without a name, as in containers
            user = "?"
        return cls(origin="cli", client=f"{user} (uid {os.getuid()})")


RETENTION = Actor(origin="retention")
"""The service itself, where it deletes runs that exceed a limit."""


def new_entry(  # noqa: PLR0913  # one for each column
    actor: Actor,
    action: Action,
    target_type: TargetType,
    target: str,
    detail: Mapping[str, Any],
    *,
    instance: str,
    outcome: str | None,
) -> AuditRow:
    """Return an entry with the current time. `detail`: bounded values without secrets."""
    present = {name: _bounded(value) for name, value in detail.items() if value is not None and value != ()}
    return AuditRow(
        audit_id=new_ulid(),
        instance=instance,
        created_at=now_ms(),
        action=action,
        actor=actor.name,
        token_id=actor.token_id,
        origin=actor.origin,
        client=actor.client,
        request_id=actor.request_id,
        target_type=target_type,
        target=target,
        detail=redact_text(to_json(present)),
        outcome=outcome,
    )


def _bounded(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= LONGEST_TEXT:
        return value
    return value[:LONGEST_TEXT] + "..."
