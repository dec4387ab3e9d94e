r"""What a scripted model says: typed, checked when it is read, never when it is too late.

A script is an ordered list of steps. Each request takes the first step that fits it and is not used up. In TOML:

    closing = "I have nothing more to say."

    [[steps]]
    text = "I run the tests."
    tool_calls = [{ name = "shell", arguments = { command = "pytest -q" } }]

    [[steps]]
    matches = '(\d+) failed'
    text = "{{1}} tests are red."

In texts and arguments, `{{task}}` is the first thing the user said, `{{heard}}` all that came since the model spoke
last, `{{result}}` the last tool result, and `{{1}}` or `{{name}}` a group of `matches`.
"""

import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_loop.errors import ConfigurationError, ProviderErrorKind
from agent_loop.messages import StopReason
from agent_loop.providers.provider import ProviderCapabilities, Purpose
from agent_loop.usage import Usage

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
"""A script is written by hand; anything larger is another file by mistake."""
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
KNOWN_PLACEHOLDERS = frozenset({"task", "heard", "result"})


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    pass


class ScriptedCall(_Part, frozen=True):
    """A tool call."""

    name: str
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    """Sent instead of `arguments`, as it is: for JSON that is broken."""
    id: str = ""
    """Made up when empty, the same way each time."""
    fragments: tuple[str, ...] = ()
    """The argument text, in the pieces it comes in; empty: cut by us."""


class ScriptedError(_Part, frozen=True):
    """The answer fails."""

    kind: ProviderErrorKind = "provider"
    message: str = "the script says that this call fails"
    status: int | None = None
    retry_after: float | None = None
    """Seconds, with the kind "rate_limited"."""
    after_chunks: int | None = None
    """How many fragments are told before; None: all that the step has."""


class Step(_Part, frozen=True):
    """One answer, and the requests it is for."""

    when: str | None = None
    """This text is in what was heard: all user texts and tool results since the model spoke last."""
    matches: str | None = None
    """This regular expression is found in what was heard; its groups can be inserted."""
    task: str | None = None
    """This text is in the first thing the user said: tells sub-agents apart."""
    purpose: Purpose | None = None
    """Only for requests of this purpose."""
    name: str = ""
    after: str | None = None
    """Only right after the step of this name."""
    repeat: bool | int = 1
    """How many requests it answers; true: all."""

    thinking: str = ""
    signature: str | None = None
    """Of the thinking."""
    text: str = ""
    chunks: tuple[str, ...] = ()
    """The text, in the pieces it comes in; empty: `text`, cut by us."""
    tool_calls: tuple[ScriptedCall, ...] = ()
    output: dict[str, Any] | None = None
    """A structured answer: in the way that the request asks for it."""
    stop_reason: StopReason | None = None
    """None: "tool_use" where there are tool calls, "stop" otherwise."""
    usage: Usage = Usage()
    error: ScriptedError | None = None
    wait: str = ""
    """Wait until somebody calls `ScriptedProvider.release` with this name. For tests, instead of clocks."""
    wait_after_chunks: int = 0
    """How many fragments are told before it waits."""
    templates: bool = True
    """Insert at `{{...}}`; false: such text stays as it is."""


class Script(_Part, frozen=True):
    """A whole script."""

    steps: tuple[Step, ...] = ()
    closing: str | None = None
    """What is said once no step fits; None: that is an error."""
    model: str = "script"
    capabilities: ProviderCapabilities = ProviderCapabilities()


def say(text: str, **known: Any) -> Step:
    """A step that says this."""
    return Step(text=text, **known)


def call(tool: str, /, **arguments: Any) -> Step:
    """A step that calls one tool."""
    return Step(tool_calls=(ScriptedCall(name=tool, arguments=arguments),))


def fail(kind: ProviderErrorKind = "provider", message: str = "", **known: Any) -> Step:
    """A step that fails at once."""
    return Step(error=ScriptedError(kind=kind, message=message or ScriptedError().message, **known))


def load_script(path: Path) -> Script:
    """The script of a `.toml` or `.json` file. Raises `ConfigurationError`, with the place that is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read the script {path}: {error.strerror}; give the path of a file") from error
    if len(data) > MAX_SCRIPT_BYTES:
        raise ConfigurationError(f"the script {path} is larger than {MAX_SCRIPT_BYTES} bytes; is it the right file?")
    return parse_script(data, "json" if path.suffix == ".json" else "toml", str(path))


def parse_script(data: bytes, form: Literal["json", "toml"], name: str) -> Script:
    """The script in this text, checked. Raises `ConfigurationError`."""
    try:
        decode = msgspec.json.decode if form == "json" else msgspec.toml.decode
        return validate_script(decode(data, type=Script))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, ConfigurationError) as error:
        raise ConfigurationError(f"the script {name} cannot be used: {error}") from error


def validate_script(script: Script) -> Script:
    """The script, when every step of it can be played. Raises `ConfigurationError`."""
    names = {step.name for step in script.steps}
    for number, step in enumerate(script.steps, 1):
        if step.after is not None and step.after not in names:
            raise ConfigurationError(f"step {number} comes after {step.after!r}, which is no step's name")
        known = KNOWN_PLACEHOLDERS | _groups_of(step, number)
        for wrong in sorted(set(_placeholders(msgspec.to_builtins(step))) - known) if step.templates else ():
            raise ConfigurationError(
                f"step {number} inserts {{{{{wrong}}}}}, which nothing fills; say templates = false to keep it as text"
            )
    return script


def _groups_of(step: Step, number: int) -> set[str]:
    if step.matches is None:
        return set()
    try:
        pattern = re.compile(step.matches)
    except re.error as error:
        raise ConfigurationError(f"`matches` of step {number} is no regular expression: {error}") from error
    return {*pattern.groupindex, *(str(group) for group in range(pattern.groups + 1))}


def _placeholders(value: Any) -> list[str]:
    match value:
        case str():
            return PLACEHOLDER.findall(value)
        case dict():
            return [found for key, item in value.items() if key != "matches" for found in _placeholders(item)]
        case list() | tuple():
            return [found for item in value for found in _placeholders(item)]
        case _:
            return []
