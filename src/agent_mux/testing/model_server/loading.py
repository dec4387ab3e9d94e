"""Scripts from JSON, and what a script may look up in the conversation."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux.testing.model_server.script import Script, Step


def parse_script(script: Any) -> Script:
    """A script from its JSON form. Raises `ValueError` saying what is wrong and where."""
    parsed = msgspec.convert(_wrap_script(script), Script)
    for index, step in enumerate(parsed.steps):
        try:
            fill_in(step, "")
        except re.error as error:
            raise ValueError(f"{{{{re:...}}}} holds no regular expression: {error} - at `$.steps[{index}]`") from error
    return parsed


def load_script(path: Path) -> Script:
    """A script from a JSON file. Raises `ValueError` naming the file."""
    try:
        return parse_script(json.loads(path.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def fill_in(step: Step, conversation: str) -> Step:
    """The step with every `{{re:PATTERN}}` replaced by what PATTERN finds in the conversation."""
    plain = msgspec.to_builtins(step)
    if "{{re:" not in json.dumps(plain):
        return step
    return msgspec.convert(_replace_patterns(plain, conversation), Step)


def _replace_patterns(value: Any, conversation: str) -> Any:
    def last_match(found: re.Match[str]) -> str:
        matches = list(re.finditer(found[1], conversation))
        return matches[-1][1] if matches else ""

    match value:
        case str():
            return re.sub(r"\{\{re:(.+?)\}\}", last_match, value)
        case list() | tuple():
            return [_replace_patterns(item, conversation) for item in value]
        case dict():
            return {key: _replace_patterns(item, conversation) for key, item in value.items()}
    return value


_KNOWN = {
    "blocks": {"text", "thinking", "tool_use", "server_tool_use", "opaque"},
    "items": {"message", "reasoning", "function_call", "custom_tool_call", "opaque"},
}


def _wrap_script(script: Any) -> Any:
    """Parts of other types become `Opaque`; what is malformed is left for the converter to complain about."""
    if not isinstance(script, Mapping):
        return script
    steps = script.get("steps", [])
    wrapped = {name: _wrap(step) for name, step in script.items()}
    return {**wrapped, "steps": [_wrap(step) for step in steps] if isinstance(steps, list | tuple) else steps}


def _wrap(step: Any) -> Any:
    if not isinstance(step, Mapping):
        return step
    lists = [name for name in _KNOWN if isinstance(step.get(name), list | tuple)]
    return {**step, **{name: [_wrap_part(part, _KNOWN[name]) for part in step[name]] for name in lists}}


def _wrap_part(part: Any, known: set[str]) -> Any:
    if isinstance(part, Mapping) and isinstance(part.get("type"), str) and part["type"] not in known:
        return {"type": "opaque", "native": dict(part)}
    return part
