"""The JSON Schema of the options of a run: as a request holds them, and as a profile does.

Types come from `RunOptions` and from what is read (`fields`, `requests`), meanings from the strings below its fields.
The ranges mirror `validate_options`; a test compares the two at every limit.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux.errors import ERROR_CODES
from agent_mux.sdk.options import LONGEST_TAG, MIN_THINKING_BUDGET, McpServer, RetryPolicy, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux.settings.fields import DURATIONS, KEYS, camel, type_in_files
from agent_mux.settings.requests import REQUEST_KEYS, type_in_requests

_NAME = {"pattern": "^[A-Za-z0-9_-]{1,64}$"}
_COUNTS = (
    "top_k", "max_tokens", "max_output_tokens", "max_turns", "max_tokens_total", "event_buffer_size", "max_attempts",
)  # fmt: skip
LIMITS: Mapping[str, Mapping[str, Any]] = {
    "temperature": {"minimum": 0, "maximum": 2},
    "top_p": {"minimum": 0, "maximum": 1},
    "thinking_budget_tokens": {"minimum": MIN_THINKING_BUDGET},
    "max_cost_usd": {"minimum": 0},
    **{name: {"minimum": 0} for name in (*DURATIONS, "jitter")},
    **{name: {"minimum": 1} for name in _COUNTS},
    "run_id": {"pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "profile": {"pattern": "^[A-Za-z0-9_-]{0,64}$"},
    "session_id": {"pattern": r"\S"},
    "fork_session_id": {"pattern": r"\S"},
    "cwd": {"pattern": "^/"},
    "env": {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
    "name": _NAME,
    "tags": {"items": {"type": "string", "maxLength": LONGEST_TAG}},
}
"""What is allowed beyond the type, by the name of the field."""
_MORE: Mapping[str, str] = {
    "retry_on": f"Some of: {', '.join(ERROR_CODES)}.",
}
_WORDS: Mapping[str, str] = {"None": "null", "True": "true", "False": "false", "max_tokens": "maxTokens"}
_EXAMPLES: Mapping[str, Any] = {
    "agent": "replay",
    "prompt": "demo",
    "env": {"AMUX_REPLAY_SPEED": "0"},
    "tags": ["nightly"],
    "timeout": 600_000,
}


def request_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a request: `requests.request_from_wire` reads what fits. `$defs` has its parts."""
    schema = _schema("RunRequest", REQUEST_KEYS, type_in_requests)
    schema["description"] = (
        "What one run is asked: the options of `amux run`, with the keys and units of a profile. `null` says nothing. "
        "`agent` and `prompt` are needed, unless a profile, a file or the service names a default agent."
    )
    schema["examples"] = [_EXAMPLES]
    return schema


def profile_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the file of a profile. `$defs` has its parts."""
    schema = _schema("ProfileFields", KEYS, type_in_files)
    schema["description"] = "What a profile says: options of runs, as in its file. `null` says nothing."
    schema["examples"] = [{"agent": "replay", "timeout": 60_000, "tags": ["review"]}]
    return schema


def _schema(title: str, keys: Mapping[str, str], type_of: Any) -> dict[str, Any]:
    types = {key: type_of(key) for key in keys}
    plain = [kind for kind in types.values() if kind is not None]
    told, parts = msgspec.json.schema_components(plain, ref_template="#/$defs/{name}")
    shapes = dict(zip((key for key, kind in types.items() if kind is not None), told, strict=True))
    shapes["retryPolicy"] = {"$ref": "#/$defs/RetryPolicy"}
    parts["RetryPolicy"] = _retry_schema()
    if McpServer.__name__ in parts:
        parts[McpServer.__name__] |= {"additionalProperties": False}
        parts[McpServer.__name__]["properties"]["name"] |= _NAME
    if Policy.__name__ in parts:
        parts[Policy.__name__]["properties"]["timeout"] |= {"minimum": 0}
    meanings = field_descriptions_of(RunOptions)
    properties = {key: _property(name, shapes[key], meanings.get(name, "")) for key, name in keys.items()}
    return {"title": title, "type": "object", "properties": properties, "additionalProperties": False, "$defs": parts}


def _property(name: str, shape: dict[str, Any], meaning: str) -> dict[str, Any]:
    """One key: what it may be, or null; what it means, in the units of JSON."""
    described = {"description": _meaning(name, meaning)} if _meaning(name, meaning) else {}
    return {**described, **_or_null({**shape, **LIMITS.get(name, {})})}


def _or_null(shape: dict[str, Any]) -> dict[str, Any]:
    match shape:
        case {"anyOf": choices, **rest}:
            return {**rest, "anyOf": [*(one for one in choices if one != {"type": "null"}), {"type": "null"}]}
        case {"type": str(kind)}:
            return {**shape, "type": [kind, "null"]}
        case {"enum": values}:
            return {**shape, "enum": [*values, None]}
    return {"anyOf": [shape, {"type": "null"}]}


def _meaning(name: str, meaning: str) -> str:
    """A string of the source in the words of JSON."""
    if name in DURATIONS:
        meaning = meaning.replace("seconds", "milliseconds").replace("Seconds", "Milliseconds")
    for word, said in _WORDS.items():
        meaning = re.sub(rf"\b{word}\b", said, meaning)
    return " ".join(f"{meaning} {_MORE.get(name, '')}".split())


def _retry_schema() -> dict[str, Any]:
    meanings = field_descriptions_of(RetryPolicy)
    kinds: Mapping[str, dict[str, Any]] = {
        "max_attempts": {"type": "integer"},
        "retry_on": {"type": "array", "items": {"enum": list(ERROR_CODES)}},
    }
    properties = {
        camel(part.name): _property(part.name, kinds.get(part.name, {"type": "number"}), meanings.get(part.name, ""))
        for part in fields(RetryPolicy)
    }
    about = "How often, how soon and for what a run is tried again."
    return {
        "title": "RetryPolicy",
        "description": about,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
