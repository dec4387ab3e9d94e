"""Checkpoints of stored sessions: the states before each prompt, to which an agent can rewind a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.sdk.session_changes import RewindRequest, RewindScope
from agent_mux.sdk.sessions import FilesSaved, PromptSent, SessionReader
from agent_mux.sessions.administration import cannot_rewind, commands_of, rewind_session
from agent_mux.sessions.library import StoredSession


class Checkpoint(Struct, frozen=True, rename="camel", kw_only=True):
    """The state of a session before one of its prompts."""

    id: Annotated[str, Meta(description="The agent's own id of the prompt.")]
    turn: Annotated[int, Meta(description="Zero-based index of the prompt in the conversation.")]
    at: Annotated[int | None, Meta(description="When the prompt was sent, in milliseconds since the epoch.")] = None
    prompt: Annotated[str, Meta(description="Text of the prompt, which a rewind removes.")] = ""
    has_files: Annotated[bool, Meta(description="Whether a rewind can also restore edited files.")] = False


class Rewound(Struct, frozen=True, rename="camel", kw_only=True):
    """The result of a rewind: the session to continue with, and what was restored."""

    session: Annotated[str, Meta(description="Id of the session with the shorter conversation.")]
    is_new: Annotated[bool, Meta(description="Whether it is a new session, and the old one is unchanged.")] = False
    checkpoint: Checkpoint
    """The checkpoint to which the session returned."""
    changed: Annotated[RewindScope, Meta(description="What was changed.")] = "conversation"
    files: Annotated[tuple[str, ...], Meta(description="Restored files, as far as the agent names them.")] = ()


_SCOPES: Mapping[RewindScope, str] = {
    "both": "conversation and files together",
    "conversation": "the conversation",
    "files": "the files",
}


@dataclass(frozen=True, slots=True)
class _Prompt:
    id: str
    at: int | None
    text: str


def checkpoints_of(known: StoredSession, reader: SessionReader) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a session in the order of its prompts. Raises `CapabilityError` if it has none."""
    commands = commands_of(known)
    if commands.rewind is None:
        raise cannot_rewind(known)
    can_restore = set(commands.scopes) != {"conversation"}
    prompts: list[_Prompt] = []
    saved: set[str] = set()
    for at, fact in reader.read():
        if isinstance(fact, PromptSent):
            prompts.append(_Prompt(fact.id, at, fact.text))
        elif isinstance(fact, FilesSaved):
            saved.add(fact.prompt)
    return tuple(
        Checkpoint(id=one.id, turn=turn, at=one.at, prompt=one.text, has_files=can_restore and one.id in saved)
        for turn, one in enumerate(prompts)
        if one.id
    )


def choose_checkpoint(session: str, wanted: str, known: Sequence[Checkpoint]) -> Checkpoint:
    """Return the checkpoint with an id, or an unambiguous beginning of it. Raises VALIDATION_ERROR."""
    matching = [one for one in known if wanted and one.id.startswith(wanted)]
    exact = [one for one in matching if one.id == wanted]
    found = exact or matching
    if len(found) == 1:
        return found[0]
    problem = f"begins with {wanted!r}" if not matching else f"is meant: several begin with {wanted!r}"
    message = f"no checkpoint of {session} {problem}; `amux sessions checkpoints {session}` lists them"
    raise AgentMuxError("VALIDATION_ERROR", message)


def rewind_to(
    known: StoredSession, checkpoints: Sequence[Checkpoint], wanted: Checkpoint, scope: RewindScope | None
) -> Rewound:
    """Rewind a session to one of its checkpoints. Raises the errors of `rewind_session`."""
    commands = commands_of(known)
    scope = resolve_scope(known, wanted, scope)
    before = [one.id for one in checkpoints if one.turn < wanted.turn]
    request = RewindRequest(checkpoint=wanted.id, previous=before[-1] if before else None, scope=scope)
    done = rewind_session(known, request)
    session = known.summary.id if done.session_id is None else f"{known.adapter.agent}:{done.session_id}"
    return Rewound(
        session=session, is_new=commands.rewind_creates_session, checkpoint=wanted, changed=scope, files=done.files
    )


def resolve_scope(known: StoredSession, wanted: Checkpoint, scope: RewindScope | None) -> RewindScope:
    """Return what to rewind: by default all that the agent can, but no files where it saved none.

    Raises `CapabilityError` and VALIDATION_ERROR for a checkpoint or a scope that is impossible.
    """
    commands = commands_of(known)
    scopes = commands.scopes
    if commands.rewind_creates_session and wanted.turn == 0:
        hint = "it stores no session without a prompt; start a new session instead"
        raise CapabilityError(known.adapter.agent, "rewinding to before the first prompt", hint=hint)
    if scope is None:
        return "conversation" if "conversation" in scopes and not wanted.has_files else scopes[0]
    if scope not in scopes:
        hint = f"its rewind changes {_SCOPES[scopes[0]]}"
        raise CapabilityError(known.adapter.agent, f"rewinding only {_SCOPES[scope]}", hint=hint)
    if scope != "conversation" and not wanted.has_files:
        message = (
            f"{known.adapter.agent} saved no files before prompt {wanted.turn + 1} of {known.summary.id}; rewind"
            " without them (--conversation)"
        )
        raise AgentMuxError("VALIDATION_ERROR", message)
    return scope
