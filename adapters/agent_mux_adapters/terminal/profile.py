r"""What has to be known of a program to talk to it at a terminal, as data: `profiles/*.toml`, or a file of the user's.

Patterns are regular expressions (Python's, multi-line) that are searched in the text of the screen. Keys are what a
person would type; TOML escapes (`\r`, `\u001b`) stand for keys without a letter.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.errors import AgentMuxError, ErrorCode
from agent_mux.facts import Risk

__all__ = ["Dialog", "FailurePattern", "Profile", "Rest", "built_in", "profile_for", "read_profile"]

_FOLDER = Path(__file__).parent / "profiles"
DEFAULT = "line"
MODEL = "{model}"
Rest = Literal["short", "long"]
"""How long a program has to be quiet before its screen is read; see `REST` of the adapter for the seconds."""


class Dialog(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something the program asks. Groups of the pattern: `action`, `detail`, and for questions `question`."""

    pattern: str
    approve: str = "y\r"
    deny: str = "n\r"
    always: str | None = None
    """Keys for "yes, and do not ask again"; None: it has no such thing."""
    risk: Risk = "medium"
    is_question: bool = False
    """It wants a text and not a permission: the answer is typed and submitted; `deny` declines."""


class FailurePattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the program shows that it failed. Group `message`, or the whole match, says why."""

    pattern: str
    code: ErrorCode = "AGENT_CRASH"


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One program, or one kind of programs."""

    name: str
    programs: tuple[str, ...] = ()
    """File names of the programs it is for."""
    rest: Rest = "short"
    """`long` for programs that pause while they work and do not say that they do."""
    ready: str
    """The program waits for a prompt."""
    busy: str | None = None
    """It works, whatever `ready` says."""
    footer: str | None = None
    """Where the answers end on the screen: input box, status line. Everything from the last match on is no answer."""
    chrome: tuple[str, ...] = ()
    """Lines that are no answer."""
    dialogs: tuple[Dialog, ...] = ()
    failures: tuple[FailurePattern, ...] = ()
    submit: str = "\r"
    newline: str = " "
    """What is typed for a line break within a prompt, unless the program takes pastes: then it is a line break."""
    interrupt: str = "\x03"
    leave: str = "\x04"
    """Ends the program. The end of the input (Ctrl-D) follows it in any case."""
    model_flag: str | None = None
    """How the model is said on the command line, with `{model}` in it."""

    def __post_init__(self) -> None:
        patterns = [self.ready, self.busy, self.footer, *self.chrome]
        patterns += [dialog.pattern for dialog in self.dialogs] + [failure.pattern for failure in self.failures]
        for pattern in patterns:
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        if self.model_flag is not None and MODEL not in self.model_flag:
            raise ValueError(f"model_flag has no {MODEL} in it: {self.model_flag!r}")


@cache
def built_in() -> Mapping[str, Profile]:
    """All profiles that come with the adapter, by name."""
    profiles = [_parsed(path.read_text("utf-8")) for path in sorted(_FOLDER.glob("*.toml"))]
    return {profile.name: profile for profile in profiles}


def profile_for(program: str) -> Profile:
    """The built-in profile for a program, by its file name; the one for line-oriented programs where there is none."""
    name = Path(program).name
    return next((profile for profile in built_in().values() if name in profile.programs), built_in()[DEFAULT])


def read_profile(path: Path) -> Profile:
    """A profile of the user's. Raises CONFIG_ERROR that says what is wrong with it."""
    try:
        return _parsed(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AgentMuxError("CONFIG_ERROR", f"{path} is no profile of a terminal program: {reason}") from error


def _parsed(text: str) -> Profile:
    return parse_profile(tomllib.loads(text))


def parse_profile(fields: Mapping[str, Any]) -> Profile:
    """A profile from plain data. Raises `ValueError`."""
    return msgspec.convert(fields, Profile)
