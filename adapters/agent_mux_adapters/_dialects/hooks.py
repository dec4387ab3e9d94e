"""Hooks as several agents have them: how they stand in files, and what is read of a call.

Two shapes of files: a list of groups, each with a list of commands, and a plain list of commands.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_mux.hooks.call import HookCall, HookDecision, HookType
from agent_mux.hooks.native import HookAnswer
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

PATIENCE = 300
"""Seconds that an agent shall wait for us: time for several handlers of half a minute. What takes longer is let through
by most agents."""
PATH_FIELDS = ("file_path", "path", "notebook_path", "absolute_path", "dir_path", "directory", "filePath")
"""Under which tools name the file or the folder that they are about."""


def patch_paths(patch: str) -> tuple[str, ...]:
    """The files that a patch of the `*** Begin Patch` form is about."""
    heads = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    found = (line.removeprefix(head) for line in patch.splitlines() for head in heads if line.startswith(head))
    return tuple(path.strip() for path in found)


def paths_of(given: Mapping[str, Any], fields: Iterable[str] = PATH_FIELDS) -> tuple[str, ...]:
    """The files that the input of a tool names."""
    return tuple(dict.fromkeys(path for name in fields if (path := text(given.get(name)))))


def hook_call(hook_type: HookType, said: Mapping[str, Any], **fields: Any) -> HookCall:
    """What most agents say alike. `fields`: what they say otherwise; empty texts are nothing."""
    found: dict[str, Any] = {
        "session_id": text(said.get("session_id")),
        "cwd": text(said.get("cwd")),
        "prompt": text(said.get("prompt")),
        "tool_call_id": text(said.get("tool_use_id")),
        "tool_name": text(said.get("tool_name")),
        **fields,
    }
    given: dict[str, Any] = {name: value if value != "" else None for name, value in found.items()}
    return HookCall(hook_type=hook_type, raw=said, **given)


def first_text(said: Mapping[str, Any], *names: str) -> str:
    """The first of these that says something."""
    return next((found for name in names if (found := text(said.get(name)))), "")


def as_json(plain: Mapping[str, Any]) -> HookAnswer:
    """An answer on standard output; nothing where there is nothing to say."""
    return HookAnswer(stdout=json.dumps(plain) + "\n") if plain else HookAnswer()


def is_pressed_on(call: HookCall) -> bool:
    """The agent goes on already because a hook has kept it from stopping: once is enough."""
    return call.raw.get("stop_hook_active") is True


def reason_of(decision: HookDecision) -> str:
    """Why not: agents want to hear something."""
    return decision.reason or "denied by a hook of agent-mux"


# -- a list of groups: [{"hooks": [{"type": "command", "command": ...}]}]


def in_group(timeout: int) -> Callable[[Any, str, str], Any]:
    """How a command is added: a group of its own, behind the others. `timeout` in the agent's unit."""

    def add(there: Any, name: str, command: str) -> Any:  # noqa: ARG001
        group = {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}
        return [*(there if isinstance(there, list) else []), group]

    return add


def without_in_groups(there: Any, is_ours: Callable[[str], bool]) -> Any:
    """Groups that are empty then are left out."""
    kept = []
    for group in there if isinstance(there, list) else []:
        hooks = mapping(group).get("hooks")
        if not isinstance(hooks, list) or not any(is_ours(_command(hook)) for hook in hooks):
            kept.append(group)
            continue
        rest = [hook for hook in hooks if not is_ours(_command(hook))]
        if rest:
            kept.append({**group, "hooks": rest})
    return kept or None


def commands_in_groups(there: Any) -> tuple[str, ...]:
    """The command lines of all groups."""
    return tuple(_command(hook) for group in rows(there) for hook in rows(group.get("hooks")))


# -- a plain list: [{"command": ...}]


def in_list(make: Callable[[str], Mapping[str, Any]]) -> Callable[[Any, str, str], Any]:
    """How a command is added: `make` says what stands for it."""

    def add(there: Any, name: str, command: str) -> Any:  # noqa: ARG001
        return [*(there if isinstance(there, list) else []), dict(make(command))]

    return add


def without_in_list(there: Any, is_ours: Callable[[str], bool]) -> Any:
    """What is not ours stays as it is."""
    return [hook for hook in there if not is_ours(_command(hook))] or None if isinstance(there, list) else there


def commands_in_list(there: Any) -> tuple[str, ...]:
    """The command lines of the list."""
    return tuple(_command(hook) for hook in rows(there))


def _command(hook: Any) -> str:
    return first_text(mapping(hook), "command", "bash")
