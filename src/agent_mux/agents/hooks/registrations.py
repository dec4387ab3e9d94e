"""What a handler raises that has no answer.

What is registered: who is called for which hooks. Source: run API, section 7.

    {"hooks": [
      {"id": "no-push", "agent": "*", "hookType": "pre_tool_use", "handler": "builtin", "target": "policy:rules.toml"},
      {"id": "notes", "agent": "*", "hookType": "*", "handler": "command", "target": ["notes", "--quiet"],
       "priority": 200, "enabled": false}
    ]}

Read strictly: a guard that nobody understands would be no guard.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.hooks import ANY_AGENT, GUARDED, HOOK_TYPES, HookCall


class HandlerFailedError(Exception):
    """A handler has no answer: half a sentence says why."""


Handler = Literal["builtin", "command", "script"]
HANDLERS: tuple[Handler, ...] = get_args(Handler)
Builtin = Literal["log", "trace", "policy"]
BUILTINS: tuple[Builtin, ...] = get_args(Builtin)
DEFAULT_PRIORITY = 100
FILE_NAME = "hooks.json"
_FIELDS = ("id", "agent", "hookType", "handler", "target", "priority", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One handler, and what it is called for."""

    id: str
    """Names it; one of a project replaces the global one with its id."""
    agent: str = ANY_AGENT
    """Registered name, or `*`."""
    hook_type: str = ANY_AGENT
    """A `HookType`, or `*`."""
    handler: Handler
    target: tuple[str, ...]
    """`builtin`: its name, and its file if it has one. `command`: program and arguments. `script`: the Python file."""
    priority: int = DEFAULT_PRIORITY
    """Lower ones are called first."""
    enabled: bool = True
    base: Path | None = None
    """The directory of the file it stands in: what `target` names relative to it."""

    def applies_to(self, call: HookCall) -> bool:
        """It is called for this."""
        return self.enabled and self.agent in (ANY_AGENT, call.agent) and self.hook_type in (ANY_AGENT, call.hook_type)

    @property
    def is_policy(self) -> bool:
        """It guards: when it fails, the answer is no."""
        return self.handler == "builtin" and self.target[:1] == ("policy",)

    @property
    def can_decide(self) -> bool:
        """It may have an opinion about what an agent is about to do."""
        watches = self.handler == "builtin" and not self.is_policy
        return self.enabled and not watches and self.hook_type in (ANY_AGENT, *GUARDED)

    def file(self) -> Path | None:
        """The file that a builtin or a script is about."""
        named = self.target[1:2] if self.handler == "builtin" else self.target[:1]
        return None if not named else (self.base or Path.cwd()) / Path(named[0]).expanduser()

    def plain(self) -> dict[str, Any]:
        """As it stands in a file."""
        target: Any = list(self.target) if self.handler == "command" else ":".join(self.target)
        return {
            "id": self.id, "agent": self.agent, "hookType": self.hook_type, "handler": self.handler,
            "target": target, "priority": self.priority, "enabled": self.enabled,
        }  # fmt: skip


def parse_registrations(text: str, path: Path) -> tuple[Registration, ...]:
    """What a file says. Raises CONFIG_ERROR with the file and the place in it."""
    try:
        said = open_document(text, "json").data()
    except DocumentError as error:
        raise _wrong(path, str(error)) from error
    if not isinstance(said, dict) or set(said) - {"hooks"} or not isinstance(said.get("hooks", []), list):
        raise _wrong(path, 'it is an object with one list: {"hooks": [...]}')
    found = [registration_from(plain, f"hooks[{at}]", path) for at, plain in enumerate(said.get("hooks", []))]
    ids = [one.id for one in found]
    for at, name in enumerate(ids):
        if name in ids[:at]:
            raise _wrong(path, f"hooks[{at}].id: {name!r} is there twice")
    return tuple(found)


def registration_from(plain: Any, where: str, path: Path) -> Registration:
    """One registration out of plain values. Raises CONFIG_ERROR that names the field."""
    if not isinstance(plain, Mapping):
        raise _wrong(path, f"{where} is no object")
    for name in plain:
        _check_known(path, f"{where} has a field", name, _FIELDS)
    for name in ("id", "handler"):
        if name not in plain:
            raise _wrong(path, f"{where} has no {name}")
    _check_texts(plain, where, path)
    _check_known(path, f"{where}.handler:", plain["handler"], HANDLERS)
    _check_known(path, f"{where}.hookType:", plain.get("hookType", ANY_AGENT), (*HOOK_TYPES, ANY_AGENT))
    priority, enabled = plain.get("priority", DEFAULT_PRIORITY), plain.get("enabled", True)
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise _wrong(path, f"{where}.priority: {priority!r} is no whole number")
    if not isinstance(enabled, bool):
        raise _wrong(path, f"{where}.enabled: {enabled!r} is neither true nor false")
    return Registration(
        id=plain["id"],
        agent=plain.get("agent", ANY_AGENT),
        hook_type=plain.get("hookType", ANY_AGENT),
        handler=plain["handler"],
        target=_target(plain, where, path),
        priority=priority,
        enabled=enabled,
        base=path.parent,
    )


def _check_texts(plain: Mapping[str, Any], where: str, path: Path) -> None:
    for name in ("id", "agent", "hookType", "handler"):
        value = plain.get(name, ANY_AGENT)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise _wrong(path, f"{where}.{name}: {value!r} is no name")


def _check_known(path: Path, where: str, said: Any, known: Sequence[str]) -> None:
    if said in known:
        return
    close = get_close_matches(str(said), known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    raise _wrong(path, f"{where} {said!r}; {hint}")


def _target(plain: Mapping[str, Any], where: str, path: Path) -> tuple[str, ...]:
    words = target_words(plain["handler"], plain.get("target", ""))
    if words is None:
        what = "program and arguments: a list, or words quoted as in a shell"
        raise _wrong(path, f"{where}.target: {what if plain['handler'] == 'command' else 'a text'}")
    if plain["handler"] == "builtin":
        _check_known(path, f"{where}.target:", words[0], BUILTINS)
        if words == ("policy",):
            raise _wrong(path, f"{where}.target: a policy has a file; write policy:FILE")
    return words


def target_words(handler: str, target: Any) -> tuple[str, ...] | None:
    """A target as words; None when it says nothing, or cannot be split."""
    if handler == "command" and isinstance(target, list):
        words = tuple(target)
    elif not isinstance(target, str):
        return None
    elif handler == "command":
        try:
            words = tuple(shlex.split(target))
        except ValueError:
            return None
    else:
        words = tuple(target.split(":", 1)) if handler == "builtin" else (target,)
    sound = all(isinstance(word, str) and "\0" not in word for word in words)
    return words if sound and words and words[0].strip() else None


def _wrong(path: Path, why: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", f"{path} cannot be used: {why}")
