"""Secrets by name: recognize names of variables, options and headers that hold secrets, and hide their values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "[hidden]"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ANYWHERE = frozenset(
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
_AT_END = frozenset({"key", "keys", "pass", "pat", "tokens", "jwt", "signature"})
"""Words that mark a secret only at the end of a name: `API_KEY`, but not `KEY_BINDINGS`."""
_ENDINGS = ("password", "passwd", "apikey", "authtoken", "accesstoken")
_HARMLESS = re.compile(
    r"max_?(?:output_?|input_?|thinking_?)?tokens|token_?(?:s|izers?|type|usage|count|limit|budget)\b|(?:public|primary|foreign|"
    r"sort|partition|cache|hot|host)_?keys?\b|(?:key|token)_?(?:id|name|file|path|type|ring|board)s?\b|_(?:file|path|dir|"
    r"sock|url|uri|cmd|command|helper|store)\b|^pwd$|^oldpwd$|tokens?_total",
    re.IGNORECASE,
)


_USER_INFORMATION = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)\S*@")


def hide_user_information(text: str) -> str:
    """Hide user and password in URLs, whatever characters they have.

    Text up to the last `@` is hidden: a password that contains `/` or `?` is invalid and still a password.
    """
    return _USER_INFORMATION.sub(rf"\1{HIDDEN}@", text)


def is_secret_name(name: str) -> bool:
    """Return whether a variable, option, header or field of this name holds a secret: `x-api-key`, `--token`."""
    if _HARMLESS.search(name.strip("-")):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and (words[-1] in _AT_END or any(word in _ANYWHERE or word.endswith(_ENDINGS) for word in words))


def hide_secret_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """Hide secrets in a command line: in `--token=...`, `--token ...`, `KEY=...` and `-H 'Authorization: ...'`."""
    result: list[str] = []
    is_value_secret = False
    for argument in arguments:
        name, sign, value = argument.partition("=")
        header, colon, content = argument.partition(": ")
        if is_value_secret and not argument.startswith("--"):
            result.append(HIDDEN)
        elif sign and value and is_secret_name(name):
            result.append(f"{name}={HIDDEN}")
        elif colon and content and " " not in header and is_secret_name(header):
            result.append(f"{header}: {HIDDEN}")
        else:
            result.append(argument)
        is_value_secret = argument.startswith("--") and not sign and is_secret_name(argument)
    return tuple(result)


_ALL_VALUES_HIDDEN = frozenset({"env", "headers"})  # any of their values may be a secret


def hide_secret_values(name: str, value: Any) -> Any:
    """Return plain data for display, with the values under secret names hidden and other types converted to text.

    `name` is the name under which the value is stored; empty: none.
    """
    if name in _ALL_VALUES_HIDDEN and isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    if value is not None and (name == "base64" or is_secret_name(name)) and isinstance(value, str):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: hide_secret_values(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [hide_secret_values("", item) for item in value]
        return list(hide_secret_arguments(items)) if name in {"args", "command"} else items
    return value if isinstance(value, str | int | float | bool | None) else str(value)
