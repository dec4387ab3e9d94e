"""Registrations of hook handlers, as written in a `hooks.json`. See docs/spec/run-api.md, section 7.

    {"hooks": [
      {"id": "no-push", "agent": "*", "hookType": "pre_tool_use", "handler": "builtin", "target": "policy:rules.toml"},
      {"id": "notes", "agent": "*", "hookType": "*", "handler": "command", "target": ["notes", "--quiet"],
       "priority": 200, "enabled": false}
    ]}

Parsing is strict: a policy with a misspelled key must not be silently ineffective.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.hooks import ANY_AGENT, GUARDED_HOOK_TYPES, HOOK_TYPES, HookCall

Handler = Literal["builtin", "command", "script"]
HANDLERS: tuple[Handler, ...] = get_args(Handler)
Builtin = Literal["log", "trace", "policy"]
BUILTINS: tuple[Builtin, ...] = get_args(Builtin)
DEFAULT_PRIORITY = 100
_FIELDS = ("id", "agent", "hookType", "handler", "target", "priority", "enabled")


class HandlerFailedError(Exception):
    """A handler failed to return a decision. The message is a clause that completes "the hook failed: ..."."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(Checked):
    """A handler and the hooks for which it is called."""

    id: str
    """Unique in a file. A registration of a project overrides the global one with the same id."""
    agent: str = ANY_AGENT
    """Registered name of an agent, or `*`."""
    hook_type: str = ANY_AGENT
    """A `HookType`, or `*`."""
    handler: Handler
    """What is called: a built-in handler, a command, or a Python script."""
    target: tuple[str, ...]
    """`builtin`: its name and, if any, its file. `command`: program and arguments. `script`: the Python file."""
    priority: int = DEFAULT_PRIORITY
    """Handlers are called in ascending order of priority."""
    enabled: bool = True
    """Whether the hook is called."""
    base: Path | None = None
    """The directory of the registration's file; relative paths in `target` are resolved against it."""

    def applies_to(self, call: HookCall) -> bool:
        """Return whether the handler is called for this hook call."""
        return self.enabled and self.agent in (ANY_AGENT, call.agent) and self.hook_type in (ANY_AGENT, call.hook_type)

    @property
    def is_policy(self) -> bool:
        """Whether the handler is a policy, whose failure denies the action."""
        return self.handler == "builtin" and self.target[:1] == ("policy",)

    @property
    def can_decide(self) -> bool:
        """Whether the handler may allow or deny an action of an agent."""
        only_observes = self.handler == "builtin" and not self.is_policy
        return self.enabled and not only_observes and self.hook_type in (ANY_AGENT, *GUARDED_HOOK_TYPES)

    def file(self) -> Path | None:
        """Return the path of the file that a builtin or script uses; None if it has none."""
        named = self.target[1:2] if self.handler == "builtin" else self.target[:1]
        return None if not named else (self.base or Path.cwd()) / Path(os.path.expanduser(named[0]))

    def plain(self) -> dict[str, Any]:
        """Return the registration as it is written in a file."""
        target: Any = list(self.target) if self.handler == "command" else ":".join(self.target)
        return {
            "id": self.id, "agent": self.agent, "hookType": self.hook_type, "handler": self.handler,
            "target": target, "priority": self.priority, "enabled": self.enabled,
        }  # fmt: skip


def parse_registrations(text: str, path: Path) -> tuple[Registration, ...]:
    """Parse the content of a `hooks.json`. Raises CONFIG_ERROR with the file and the position in it."""
    try:
        content = open_document(text, "json").data()
    except DocumentError as error:
        raise _config_error(path, str(error)) from error
    if not isinstance(content, dict) or set(content) - {"hooks"} or not isinstance(content.get("hooks", []), list):
        raise _config_error(path, 'expected an object with one list: {"hooks": [...]}')
    found = [registration_from(plain, f"hooks[{index}]", path) for index, plain in enumerate(content.get("hooks", []))]
    ids = [one.id for one in found]
    for index, name in enumerate(ids):
        if name in ids[:index]:
            raise _config_error(path, f"hooks[{index}].id: duplicate id {name!r}")
    return tuple(found)


def registration_from(plain: Any, where: str, path: Path) -> Registration:
    """Validate and convert one registration. `where` is its position in the file. Raises CONFIG_ERROR."""
    if not isinstance(plain, Mapping):
        raise _config_error(path, f"{where} is not an object")
    for name in plain:
        _check_known(path, f"{where}: unknown field", name, _FIELDS)
    for name in ("id", "handler"):
        if name not in plain:
            raise _config_error(path, f"{where}: missing {name}")
    _check_names(plain, where, path)
    _check_known(path, f"{where}.handler: unknown handler", plain["handler"], HANDLERS)
    _check_known(path, f"{where}.hookType: unknown type", plain.get("hookType", ANY_AGENT), (*HOOK_TYPES, ANY_AGENT))
    priority, enabled = plain.get("priority", DEFAULT_PRIORITY), plain.get("enabled", True)
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise _config_error(path, f"{where}.priority: {priority!r} is not a whole number")
    if not isinstance(enabled, bool):
        raise _config_error(path, f"{where}.enabled: {enabled!r} is not true or false")
    return Registration(
        id=plain["id"],
        agent=plain.get("agent", ANY_AGENT),
        hook_type=plain.get("hookType", ANY_AGENT),
        handler=plain["handler"],
        target=_parse_target(plain, where, path),
        priority=priority,
        enabled=enabled,
        base=path.parent,
    )


def target_words(handler: str, target: Any) -> tuple[str, ...] | None:
    """Split a target into words; None if it is empty or invalid."""
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
    is_valid = all(isinstance(word, str) and "\0" not in word for word in words)
    return words if is_valid and words and words[0].strip() else None


def _parse_target(plain: Mapping[str, Any], where: str, path: Path) -> tuple[str, ...]:
    words = target_words(plain["handler"], plain.get("target", ""))
    if words is None:
        is_command = plain["handler"] == "command"
        expected = "program and arguments, as a list or quoted as in a shell" if is_command else "a string"
        raise _config_error(path, f"{where}.target: expected {expected}")
    if plain["handler"] == "builtin":
        _check_known(path, f"{where}.target: unknown builtin", words[0], BUILTINS)
        if words == ("policy",):
            raise _config_error(path, f"{where}.target: a policy needs a file; write policy:FILE")
    return words


def _check_names(plain: Mapping[str, Any], where: str, path: Path) -> None:
    for name in ("id", "agent", "hookType", "handler"):
        value = plain.get(name, ANY_AGENT)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise _config_error(path, f"{where}.{name}: {value!r} is not a name")


def _check_known(path: Path, where: str, value: Any, known: Sequence[str]) -> None:
    if value in known:
        return
    hint = did_you_mean(str(value), known, f"known: {', '.join(known)}")
    raise _config_error(path, f"{where} {value!r}; {hint}")


def _config_error(path: Path, problem: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", f"{path} cannot be used: {problem}")
