"""JSON Schemas of run options: of a request and of a profile.

The types come from `RunOptions` and from the readers in `options_json` and `requests`, the descriptions from the
strings below the fields of `RunOptions`. The ranges mirror `validate_options`; a test compares both at every limit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux._util.json_schemas import json_schema_components
from agent_mux.errors import ERROR_CODES
from agent_mux.sdk.options import (
    DURATIONS,
    FAIL_ON,
    MAX_ITEMS,
    MAX_SERVER_ITEMS,
    MAX_TAG_LENGTH,
    MIN_MAX_TEXT_BYTES,
    MIN_THINKING_BUDGET,
    McpServer,
    RetryPolicy,
    RunOptions,
)
from agent_mux.sdk.policy import Policy
from agent_mux.settings.options_json import DEPRECATED_KEYS, PROFILE_KEYS, camel, profile_key_type
from agent_mux.settings.requests import REQUEST_KEYS, request_key_type

_NAME = {"pattern": "^[A-Za-z0-9_-]{1,64}$"}
_COUNTS = (
    "top_k", "max_tokens", "max_output_tokens", "max_model_calls", "max_tokens_total", "event_buffer_size",
    "max_attempts",
)  # fmt: skip
LIMITS: Mapping[str, Mapping[str, Any]] = {
    "temperature": {"minimum": 0, "maximum": 2},
    "top_p": {"minimum": 0, "maximum": 1},
    "thinking_budget_tokens": {"minimum": MIN_THINKING_BUDGET},
    "max_text_bytes": {
        "not": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": MIN_MAX_TEXT_BYTES},
        "minimum": 0,
    },
    "max_cost_usd": {"minimum": 0},
    **{name: {"minimum": 0} for name in (*DURATIONS, "jitter")},
    **{name: {"minimum": 1} for name in _COUNTS},
    "run_id": {"pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "profile": {"pattern": "^[A-Za-z0-9_-]{0,64}$"},
    "session_id": {"pattern": r"\S"},
    "fork_session_id": {"pattern": r"\S"},
    "session_name": {"pattern": "^[A-Za-z0-9_-]{1,64}$"},
    "cwd": {"pattern": "^/"},
    **{name: {"maxItems": limit} for name, limit in MAX_ITEMS.items()},
    "env": {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "maxProperties": MAX_ITEMS["env"]},
    **{
        name: {"maxProperties": MAX_ITEMS[name], "propertyNames": {"pattern": r"\S"}}
        for name in ("native_options", "thinking_override")
    },
    **{
        name: {"maxItems": MAX_ITEMS[name], "items": {"type": "string", "pattern": r"\S"}}
        for name in ("extra_args", "allowed_tools", "disallowed_tools")
    },
    "add_dirs": {"maxItems": MAX_ITEMS["add_dirs"], "items": {"type": "string", "pattern": "^/"}},
    "fallback_model": {"pattern": r"\S"},
    "name": _NAME,
    "fail_on": {"items": {"type": "string", "enum": list(FAIL_ON)}},
    "tags": {"items": {"type": "string", "maxLength": MAX_TAG_LENGTH}, "maxItems": MAX_ITEMS["tags"]},
}
"""Constraints beyond the type, by the name of the field."""
_ADDITIONS: Mapping[str, str] = {
    "retry_on": f"Some of: {', '.join(ERROR_CODES)}.",
}
_JSON_WORDS: Mapping[str, str] = {"None": "null", "True": "true", "False": "false", "max_tokens": "maxTokens"}
_EXAMPLES: Mapping[str, Any] = {
    "agent": "replay",
    "prompt": "demo",
    "env": {"AMUX_REPLAY_SPEED": "0"},
    "tags": ["nightly"],
    "timeout": 600_000,
}


def request_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the requests that `requests.request_from_json` accepts."""
    schema = _schema("RunRequest", REQUEST_KEYS, request_key_type)
    schema["description"] = (
        "The options of one run: those of `amux run`, with the keys and units of a profile. `null` means unset. "
        "`prompt` is required, and `agent`, unless a profile, a settings file or the service names a default agent."
    )
    schema["examples"] = [_EXAMPLES]
    return schema


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a profile as the service sends and takes it: durations in milliseconds."""
    schema = _schema("ProfileFields", PROFILE_KEYS, profile_key_type)
    schema["description"] = "The options of a profile. `null` means unset."
    schema["examples"] = [{"agent": "replay", "timeout": 60_000, "tags": ["review"]}]
    return schema


def _schema(title: str, keys: Mapping[str, str], type_of: Callable[[str], Any]) -> dict[str, Any]:
    types = {key: type_of(key) for key in keys}
    plain = [kind for kind in types.values() if kind is not None]
    components, parts = json_schema_components(plain, ref_template="#/$defs/{name}")
    schemas = dict(zip((key for key, kind in types.items() if kind is not None), components, strict=True))
    schemas["retryPolicy"] = {"$ref": "#/$defs/RetryPolicy"}
    parts["RetryPolicy"] = _retry_policy_schema()
    if McpServer.__name__ in parts:
        parts[McpServer.__name__] |= {"additionalProperties": False}
        server = parts[McpServer.__name__]["properties"]
        server["name"] |= _NAME
        server["args"] |= {"maxItems": MAX_SERVER_ITEMS}
        for name in ("env", "headers"):
            server[name] |= {"maxProperties": MAX_SERVER_ITEMS}
    if Policy.__name__ in parts:
        parts[Policy.__name__]["properties"]["timeout"] |= {"minimum": 0}
    descriptions = field_descriptions_of(RunOptions)
    properties = {key: _property(name, schemas[key], descriptions.get(name, "")) for key, name in keys.items()}
    properties |= {old: {**properties[new], "deprecated": True} for old, new in DEPRECATED_KEYS.items()}
    return {"title": title, "type": "object", "properties": properties, "additionalProperties": False, "$defs": parts}


def _property(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Return the schema of one key: nullable, with its limits, and with its description in JSON terms."""
    description = _json_description(name, description)
    described = {"description": description} if description else {}
    return {**described, **_nullable({**schema, **LIMITS.get(name, {})})}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    match schema:
        case {"anyOf": choices, **rest}:
            return {**rest, "anyOf": [*(one for one in choices if one != {"type": "null"}), {"type": "null"}]}
        case {"type": str(kind)}:
            return {**schema, "type": [kind, "null"]}
        case {"enum": values}:
            return {**schema, "enum": [*values, None]}
    return {"anyOf": [schema, {"type": "null"}]}


def _json_description(name: str, description: str) -> str:
    """Replace Python's units, constants and names in a description by those of JSON."""
    if name in DURATIONS:
        description = description.replace("seconds", "milliseconds").replace("Seconds", "Milliseconds")
    for python_word, json_word in _JSON_WORDS.items():
        description = re.sub(rf"\b{python_word}\b", json_word, description)
    return " ".join(f"{description} {_ADDITIONS.get(name, '')}".split())


def _retry_policy_schema() -> dict[str, Any]:
    descriptions = field_descriptions_of(RetryPolicy)
    kinds: Mapping[str, dict[str, Any]] = {
        "max_attempts": {"type": "integer"},
        "retry_on": {"type": "array", "items": {"enum": list(ERROR_CODES)}},
    }
    properties = {
        camel(part.name): _property(
            part.name, kinds.get(part.name, {"type": "number"}), descriptions.get(part.name, "")
        )
        for part in fields(RetryPolicy)
    }
    about = "How often, after which delays and after which errors a failed run is retried."
    return {
        "title": "RetryPolicy",
        "description": about,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
