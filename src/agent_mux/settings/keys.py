"""Which fields of `RunOptions` may stand in our files, under which keys, and what is said about a key that may not.

Source: run API, section 1 (what is not allowed in a profile).
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from agent_mux.errors import FieldError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import RunOptions

FOR_THE_CALL: Mapping[str, str] = {
    "prompt": "it is what one run is about",
    "attachments": "they are what one run is about",
    "cwd": "files hold for every directory",
    "env": "files are no place for what may be secret",
    "session_id": "it is what one run goes on with",
    "fork_session_id": "it is what one run begins with",
    "no_session": "it is about one session",
    "run_id": "every run has its own",
    "project_id": "it says which project one run is counted to",
    "on_approval_request": "a file cannot hold a function",
    "on_input_required": "a file cannot hold a function",
    "agents_doc": "it is about one run",
    "profile": "a profile cannot name another",
}
"""Fields that no file may say, and why."""

DURATIONS = frozenset({"timeout", "inactivity_timeout", "grace_period", "approval_timeout", "base_delay", "max_delay"})
"""Seconds in Python, milliseconds in files."""


def camel(name: str) -> str:
    """`max_turns` as it is in files: `maxTurns`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


KEYS: Mapping[str, str] = {camel(spec.name): spec.name for spec in fields(RunOptions) if spec.name not in FOR_THE_CALL}
"""What a profile may hold: key, and field."""
_REASONS = {camel(name): why for name, why in FOR_THE_CALL.items()}


class Problems:
    """Collects what is wrong with an object, by the keys of the file."""

    def __init__(self) -> None:
        self.fields: list[FieldError] = []

    def add(self, path: str, received: Any, allowed: str) -> None:
        """One more."""
        self.fields.append(FieldError(path, received, allowed))

    def unknown(self, path: str, received: Any, known: Iterable[str]) -> None:
        """A key that there is not."""
        key, known = path.rpartition(".")[2], list(known)
        why = _REASONS.get(key)
        if why is not None:
            shown = HIDDEN if key == "env" else received
            self.add(path, shown, f"nothing here: it is for the call alone, because {why}")
            return
        default = f"default{key.capitalize()}"
        close = [default] if default in known else get_close_matches(key, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(sorted(known))}"
        self.add(path, received, f"no such key; {hint}")
