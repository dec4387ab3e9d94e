"""Names of variables, options and headers that hold secrets.

Plain data as people may see it: options of runs, and files that say them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "[hidden]"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = frozenset(
    {
        "apikey",
        "authkey",
        "authorization",
        "authtoken",
        "accesskey",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "creds",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "pwd",
        "secret",
        "secretkey",
        "secrets",
        "token",
    }
)
_LAST = frozenset({"key", "keys", "pass", "pat", "tokens", "jwt", "signature"})
"""Secret at the end of a name only: `API_KEY`, and not `KEY_BINDINGS`."""
_ENDINGS = ("password", "passwd", "apikey", "authtoken", "accesstoken")
_HARMLESS = re.compile(
    r"max_?(?:output_?|input_?|thinking_?)?tokens|token_?(?:s|izers?|type|usage|count|limit|budget)\b|(?:public|primary|foreign|"
    r"sort|partition|cache|hot|host)_?keys?\b|(?:key|token)_?(?:id|name|file|path|type|ring|board)s?\b|_(?:file|path|dir|"
    r"sock|url|uri|cmd|command|helper|store)\b|^pwd$|^oldpwd$|tokens?_total",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """A variable, option, header or field of this name holds a secret: `API_KEY`, `x-api-key`, `--token`."""
    if _HARMLESS.search(name.strip("-")):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and (words[-1] in _LAST or any(word in _ALWAYS or word.endswith(_ENDINGS) for word in words))


def without_secret_values(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command line for people: `--token=...`, `--token ...`, `KEY=...` and headers (`-H 'Authorization: ...'`)."""
    shown: list[str] = []
    names_secret = False
    for argument in arguments:
        name, sign, value = argument.partition("=")
        header, colon, content = argument.partition(": ")
        if names_secret and not argument.startswith("--"):
            shown.append(HIDDEN)
        elif sign and value and is_secret_name(name):
            shown.append(f"{name}={HIDDEN}")
        elif colon and content and " " not in header and is_secret_name(header):
            shown.append(f"{header}: {HIDDEN}")
        else:
            shown.append(argument)
        names_secret = argument.startswith("--") and not sign and is_secret_name(argument)
    return tuple(shown)


_SHOWN_AS_NAMES = frozenset({"env", "headers"})  # their values may be secrets


def shown(name: str, value: Any) -> Any:
    """A value without what its name, or a name in it, says is secret. What JSON has no word for becomes text."""
    if name in _SHOWN_AS_NAMES and isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    if value is not None and (name == "base64" or is_secret_name(name)) and isinstance(value, str):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: shown(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [shown("", item) for item in value]
        return list(without_secret_values(items)) if name in {"args", "command"} else items
    return value if isinstance(value, str | int | float | bool | None) else str(value)
