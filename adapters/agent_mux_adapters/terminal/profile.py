r"""Profiles: how to operate a program at a terminal, as data; `profiles/*.toml`, or a file of the user.

Patterns are Python regular expressions (multi-line) that are searched in the text of the screen. Keys are what a
person would type; TOML escapes (`\r`, `\u001b`) represent keys without a letter.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.sdk import AgentMuxError, ErrorCode
from agent_mux.sdk.facts import Risk

__all__ = ["Dialog", "FailurePattern", "Profile", "Rest", "built_in", "profile_for", "read_profile"]

_FOLDER = Path(__file__).parent / "profiles"
DEFAULT = "line"
MODEL = "{model}"
Rest = Literal["short", "long"]
"""How long a program has to be quiet before its screen is read; `REST` of the adapter has the seconds."""


class Dialog(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A dialog of the program. Groups of the pattern: `action`, `detail`, and for questions `question`."""

    pattern: str
    approve: str = "y\r"
    deny: str = "n\r"
    always: str | None = None
    """Keys for "yes, and do not ask again"; None if the dialog has no such choice."""
    risk: Risk = "medium"
    is_question: bool = False
    """Whether the dialog asks for a text, which is typed and submitted; `deny` declines."""


class FailurePattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the program shows a failure. The group `message`, or else the whole match, is the reason."""

    pattern: str
    code: ErrorCode = "AGENT_CRASH"


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The profile of one program, or of one kind of programs."""

    name: str
    programs: tuple[str, ...] = ()
    """File names of the programs with this profile."""
    rest: Rest = "short"
    """`long` for programs that pause during a turn without showing that they are busy."""
    ready: str
    """Matches when the program waits for a prompt."""
    busy: str | None = None
    """Matches when the program is busy; takes precedence over `ready`."""
    footer: str | None = None
    """Matches where answers end: input box, status line. The text from the last match on does not belong to them."""
    chrome: tuple[str, ...] = ()
    """Patterns of lines that do not belong to an answer."""
    dialogs: tuple[Dialog, ...] = ()
    failures: tuple[FailurePattern, ...] = ()
    submit: str = "\r"
    newline: str = " "
    """Typed for a line break in a prompt, unless the program accepts pastes, which keep line breaks."""
    interrupt: str = "\x03"
    leave: str = "\x04"
    """Keys that end the program; the end of input (Ctrl-D) follows in any case."""
    model_flag: str | None = None
    """The command-line flag for the model, with `{model}` in it; None if the program has none."""

    def __post_init__(self) -> None:
        patterns = [self.ready, self.busy, self.footer, *self.chrome]
        patterns += [dialog.pattern for dialog in self.dialogs] + [failure.pattern for failure in self.failures]
        for pattern in patterns:
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        if self.model_flag is not None and MODEL not in self.model_flag:
            raise ValueError(f"model_flag does not contain {MODEL}: {self.model_flag!r}")


@cache
def built_in() -> Mapping[str, Profile]:
    """Return the profiles of the adapter by name."""
    profiles = [_parsed(path.read_text("utf-8")) for path in sorted(_FOLDER.glob("*.toml"))]
    return {profile.name: profile for profile in profiles}


def profile_for(program: str) -> Profile:
    """Return the built-in profile for a program's file name; without one, that of line-oriented programs."""
    name = Path(program).name
    return next((profile for profile in built_in().values() if name in profile.programs), built_in()[DEFAULT])


def read_profile(path: Path) -> Profile:
    """Read a user's profile. Raises CONFIG_ERROR with the reason if it is invalid."""
    try:
        return _parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AgentMuxError("CONFIG_ERROR", f"{path} is not a terminal profile: {reason}") from error


def _parsed(text: str) -> Profile:
    return parse_profile(tomllib.loads(text))


def parse_profile(fields: Mapping[str, Any]) -> Profile:
    """Convert plain data to a profile. Raises `ValueError`."""
    return msgspec.convert(fields, Profile)
