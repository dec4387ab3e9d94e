r"""The format of scripts for `ScriptedProvider`, validated when a script is loaded.

A script is an ordered list of steps. Each request is answered by the first matching step with uses left. In TOML:

    closing = "I have nothing more to say."

    [[steps]]
    text = "I run the tests."
    tool_calls = [{ name = "shell", arguments = { command = "pytest -q" } }]

    [[steps]]
    matches = '(\d+) failed'
    text = "{{1}} tests are red."

In texts and arguments, `{{task}}` is the first user message, `{{heard}}` the user texts and tool results since the
model's last answer, `{{result}}` the last tool result, and `{{1}}` or `{{name}}` a group of `matches`.
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
"""Scripts are written by hand; a larger file is a mistake."""
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
KNOWN_PLACEHOLDERS = frozenset({"task", "heard", "result"})


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    pass


class ScriptedCall(_Part, frozen=True):
    """A tool call of a step."""

    name: str
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    """Text that is sent instead of `arguments`, for example invalid JSON."""
    id: str = ""
    """Id of the call; generated deterministically if empty."""
    fragments: tuple[str, ...] = ()
    """The fragments of the argument text; empty: split automatically."""


class ScriptedError(_Part, frozen=True):
    """Failure of a step, raised as the `ProviderError` of its kind."""

    kind: ProviderErrorKind = "provider"
    message: str = "the script makes this call fail"
    status: int | None = None
    retry_after: float | None = None
    """Seconds, with the kind "rate_limited"."""
    after_chunks: int | None = None
    """Number of chunks before the failure; None: all chunks of the step."""


class Step(_Part, frozen=True):
    """One answer, and the conditions of the requests that it answers."""

    when: str | None = None
    """Text that occurs in the user texts and tool results since the model's last answer."""
    matches: str | None = None
    """Regular expression that matches in these texts; its groups can be inserted."""
    task: str | None = None
    """Text that occurs in the first user message; distinguishes sub-agents."""
    purpose: Purpose | None = None
    """Purpose that the request must have."""
    name: str = ""
    after: str | None = None
    """Name of the step that must have been played directly before."""
    repeat: bool | int = 1
    """Number of requests that the step answers; true: unlimited."""

    thinking: str = ""
    signature: str | None = None
    """Signature of the thinking."""
    text: str = ""
    chunks: tuple[str, ...] = ()
    """The chunks of the text; empty: `text`, split automatically."""
    tool_calls: tuple[ScriptedCall, ...] = ()
    output: dict[str, Any] | list[Any] | str | int | float | bool | None = None
    """A structured answer, returned in the way that the request asks for."""
    stop_reason: StopReason | None = None
    """None: "tool_use" with tool calls, "stop" otherwise."""
    usage: Usage = Usage()
    error: ScriptedError | None = None
    wait: str = ""
    """Wait for a call of `ScriptedProvider.release` with this name; replaces timing in tests."""
    wait_after_chunks: int = 0
    """Number of chunks before the wait."""
    templates: bool = True
    """Whether `{{...}}` is replaced; otherwise it stays literal text."""


class Script(_Part, frozen=True):
    """A whole script: its steps, and the provider's properties."""

    steps: tuple[Step, ...] = ()
    closing: str | None = None
    """Answer if no step matches; None raises an error."""
    model: str = "script"
    capabilities: ProviderCapabilities = ProviderCapabilities()


def say(text: str, **known: Any) -> Step:
    """Return a step that answers with this text."""
    return Step(text=text, **known)


def call(tool: str, /, **arguments: Any) -> Step:
    """Return a step that calls one tool."""
    return Step(tool_calls=(ScriptedCall(name=tool, arguments=arguments),))


def fail(kind: ProviderErrorKind = "provider", message: str = "", **known: Any) -> Step:
    """Return a step that fails at once."""
    return Step(error=ScriptedError(kind=kind, message=message or ScriptedError().message, **known))


def load_script(path: Path) -> Script:
    """Return the script in a `.toml` or `.json` file. Raises `ConfigurationError` with the position of an error."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read the script {path}: {error.strerror}; pass the path of a file") from error
    if len(data) > MAX_SCRIPT_BYTES:
        raise ConfigurationError(f"the script {path} is larger than {MAX_SCRIPT_BYTES} bytes; check the path")
    return parse_script(data, "json" if path.suffix == ".json" else "toml", str(path))


def parse_script(data: bytes, form: Literal["json", "toml"], name: str) -> Script:
    """Return the validated script in this text. Raises `ConfigurationError`."""
    try:
        decode = msgspec.json.decode if form == "json" else msgspec.toml.decode
        return validate_script(decode(data, type=Script))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, ConfigurationError) as error:
        raise ConfigurationError(f"the script {name} cannot be used: {error}") from error


def validate_script(script: Script) -> Script:
    """Return the script if every step can be played. Raises `ConfigurationError`."""
    names = {step.name for step in script.steps}
    for number, step in enumerate(script.steps, 1):
        if step.after is not None and step.after not in names:
            raise ConfigurationError(f"step {number} comes after {step.after!r}, but no step has this name")
        known = KNOWN_PLACEHOLDERS | _groups_of(step, number)
        for wrong in sorted(set(_placeholders(msgspec.to_builtins(step))) - known) if step.templates else ():
            raise ConfigurationError(
                f"step {number} inserts {{{{{wrong}}}}}, which is never set; use templates = false to keep it as text"
            )
    return script


def _groups_of(step: Step, number: int) -> set[str]:
    if step.matches is None:
        return set()
    try:
        pattern = re.compile(step.matches)
    except re.error as error:
        raise ConfigurationError(f"`matches` of step {number} is not a regular expression: {error}") from error
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
