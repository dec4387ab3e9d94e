"""Requests of operations: arguments of the model as path, query, headers, cookies and body.

Values are encoded so that none can change the path, add a header or another parameter.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agent_loop.errors import InvalidArgumentsError
from agent_loop.openapi.config import ApiKeyAuth, OpenApiAuth, OpenApiConfig, is_header
from agent_loop.openapi.operations import FORM, JSON, MULTIPART, Body, Operation, Parameter

_RESERVED = ":/?@!$'()*,;="
"""Characters that `allowReserved` leaves as they are; without those that end a value."""
_SEPARATORS: Mapping[str, str] = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


@dataclass(slots=True)
class RequestParts:
    """The parts of a request. The URL has no secrets; `secret_query` and the headers may."""

    method: str
    url: str
    secret_query: str
    headers: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)
    """The body as an argument of `httpx.Request`."""

    @property
    def whole_url(self) -> str:
        """The URL that is requested."""
        if not self.secret_query:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}{self.secret_query}"


def build_request(
    operation: Operation,
    base_url: str,
    config: OpenApiConfig,
    parameters: Mapping[str, Any],
    body: Any,
) -> RequestParts:
    """Return the request of a call. `parameters` are values by "location:name"; `body` is None without a body.

    Raises `InvalidArgumentsError` for values that cannot be sent.
    """
    values = [
        (parameter, value)
        for parameter in operation.parameters
        if (value := parameters.get(key_of(parameter))) is not None
    ]
    path = _path(operation.path, values)
    pairs = [pair for each, value in values if each.location == "query" for pair in _query_values(each, value)]
    url = base_url + path + ("?" + "&".join(pairs) if pairs else "")
    parts = RequestParts(operation.method, url, _key_pair(config.auth, "query"), _headers(values, config))
    if operation.body is not None and body is not None:
        _add_body(parts, operation.body, body)
    return parts


_Values = Sequence[tuple[Parameter, Any]]


def _path(template: str, values: _Values) -> str:
    path = template
    for parameter, value in values:
        if parameter.location == "path":
            path = path.replace(f"{{{parameter.name}}}", _path_value(parameter, value))
    if any(step in {".", ".."} for step in path.split("/")):
        raise InvalidArgumentsError("a parameter of the path is '.' or '..', which would lead to another operation")
    return path


def _headers(values: _Values, config: OpenApiConfig) -> dict[str, str]:
    """Return the headers; those of the configuration take precedence over parameters."""
    headers = {"accept": "application/json, text/*;q=0.9, */*;q=0.1"}
    headers |= {each.name.lower(): _header_value(each, value) for each, value in values if each.location == "header"}
    headers |= {name.lower(): value for name, value in config.headers.items()}
    headers |= config.auth.headers() if config.auth is not None else {}
    cookies = [pair for each, value in values if each.location == "cookie" for pair in _query_values(each, value)]
    cookies += [pair] if (pair := _key_pair(config.auth, "cookie")) else []
    own = [headers["cookie"]] if "cookie" in headers else []
    return {**headers, "cookie": "; ".join([*own, *cookies])} if cookies else headers


def _key_pair(auth: OpenApiAuth | None, location: str) -> str:
    """Return the API key as `name=value` if it belongs into this place, else an empty text."""
    if not isinstance(auth, ApiKeyAuth) or auth.location != location:
        return ""
    return f"{_encode(auth.name)}={_encode(auth.value)}"


def key_of(parameter: Parameter) -> str:
    """Return the key of a parameter's value: names are unique for one place only."""
    return f"{parameter.location}:{parameter.name}"


def _add_body(parts: RequestParts, body: Body, value: Any) -> None:
    """Add a body. The content type of a multipart body has a boundary, which httpx adds."""
    kind = body.content_type.partition(";")[0].strip().lower()
    if kind == MULTIPART:
        parts.body = {"files": list(_multipart(body, _fields(value)))}
        return
    parts.headers["content-type"] = JSON if kind == "*/*" else body.content_type
    if kind == FORM:
        pairs = [pair for name, each in _fields(value).items() for pair in _pairs(name, each)]
        parts.body = {"content": "&".join(pairs).encode()}
    elif body.is_json:
        parts.body = {"content": _to_json(value).encode(errors="replace")}
    else:
        parts.body = {"content": _text(value).encode(errors="replace")}


def _fields(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgumentsError("the body is a form; pass an object with its fields")
    return {name: each for name, each in value.items() if each is not None}


def _multipart(body: Body, fields: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the parts of a multipart body; a field of binary data is a file."""
    schema = body.schema if isinstance(body.schema, Mapping) else {}
    properties = schema.get("properties") or {}
    for name, value in fields.items():
        described = properties.get(name)
        is_file = isinstance(described, Mapping) and (
            described.get("format") in {"binary", "byte"} or "contentMediaType" in described
        )
        for each in value if isinstance(value, list) else [value]:
            yield name, (name if is_file else None, _text(each).encode(errors="replace"))


def _pairs(name: str, value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        yield f"{_encode(name)}={_encode(_text(each))}"


def _path_value(parameter: Parameter, value: Any) -> str:
    """Return the value for the path. Raises `InvalidArgumentsError` if it is empty."""
    if value in ("", [], {}):
        raise InvalidArgumentsError(f"{parameter.name!r} is a part of the path and must not be empty")
    prefix, separator = {"label": (".", "."), "matrix": (";", ";")}.get(parameter.style, ("", ","))
    if parameter.style == "matrix":
        return ";" + ";".join(
            f"{_encode(name)}={each}"
            for name, each in _named(parameter, value, separator="," if not parameter.explode else None)
        )
    return prefix + _joined(parameter, value, separator if parameter.explode else ",", _encode)


def _header_value(parameter: Parameter, value: Any) -> str:
    text = _to_json(value) if parameter.is_json else _joined(parameter, value, ",", str)
    if not is_header(parameter.name, text) or not text.isascii():
        raise InvalidArgumentsError(f"{parameter.name!r} is a header: use printable ASCII characters only")
    return text


def _query_values(parameter: Parameter, value: Any) -> Iterator[str]:
    """Yield the pairs `name=value` of a parameter of the query, or of a cookie."""
    name = _encode(parameter.name)
    encode = _encode_reserved if parameter.allow_reserved else _encode
    if parameter.is_json:
        yield f"{name}={encode(_to_json(value))}"
    elif parameter.style == "deepObject" and isinstance(value, Mapping):
        for key, each in value.items():
            yield from (f"{name}%5B{_encode(key)}%5D={encode(_text(one))}" for one in _items(each))
    else:
        separator = _SEPARATORS.get(parameter.style, ",")
        for key, text in _named(parameter, value, separator=None if parameter.explode else separator, encode=encode):
            yield f"{_encode(key)}={text}"


def _named(
    parameter: Parameter, value: Any, *, separator: str | None, encode: Callable[[str], str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield names and encoded values: one pair with a separator, else one for each item or property."""
    encode = encode or _encode
    if separator is not None or not isinstance(value, list | Mapping):
        yield parameter.name, _joined(parameter, value, separator or ",", encode)
    elif isinstance(value, Mapping):
        yield from ((key, encode(_text(each))) for key, each in value.items() if each is not None)
    else:
        yield from ((parameter.name, encode(_text(each))) for each in value)


def _joined(parameter: Parameter, value: Any, separator: str, encode: Callable[[str], str]) -> str:
    """Return a value as one text; properties of objects are `key=value` if they are exploded, else `key,value`."""
    if isinstance(value, list):
        return separator.join(encode(_text(each)) for each in value)
    if isinstance(value, Mapping):
        link = "=" if parameter.explode else separator
        return separator.join(f"{encode(key)}{link}{encode(_text(each))}" for key, each in value.items())
    return encode(_text(value))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidArgumentsError("a value is not valid JSON: use finite numbers") from None


def _encode(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _encode_reserved(text: str) -> str:
    return quote(text, safe=_RESERVED, errors="replace")
