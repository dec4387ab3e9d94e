"""Expressions that match the beginnings of what another expression matches: texts that more data may complete."""

import re
from collections.abc import Iterable
from functools import lru_cache
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]  # the only access to parsed expressions
from typing import Any

_Node = tuple[Any, Any]
_END: _Node = (_constants.AT, _constants.AT_END_STRING)
_SINGLE = frozenset({_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY})
_REPEATS = frozenset({_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT})


@lru_cache(maxsize=512)
def compile_prefix(expression: bytes) -> "re.Pattern[bytes]":
    """Return an expression that matches data which ends before the end of a match of `expression` is certain.

    Lookahead is taken to succeed, because it may depend on data that have not arrived. For an expression with a
    construct that this module does not know, the result matches as long as the data have no space.
    """
    parsed = _parser.parse(expression)
    try:
        nodes = _beginnings(list(parsed), parsed.state)
    except NotImplementedError:
        return re.compile(rb"\S*\Z")
    compiled: re.Pattern[bytes] = _compiler.compile(_pattern(parsed.state, nodes), parsed.state.flags)
    return compiled


def _pattern(state: Any, nodes: Iterable[_Node]) -> Any:
    return _parser.SubPattern(state, list(nodes))


def _beginnings(nodes: list[_Node], state: Any) -> list[_Node]:
    """Return what matches a beginning of a sequence and then the end of the data."""
    if not nodes:
        return []
    first, *rest = nodes
    begun = _beginnings_of_node(first, state)
    if not rest:
        return begun
    continued = [*_whole(first, state), *_beginnings(rest, state)]
    return [(_constants.BRANCH, (None, [_pattern(state, begun), _pattern(state, continued)]))]


def _beginnings_of_node(node: _Node, state: Any) -> list[_Node]:
    kind, value = node
    if kind in _SINGLE or kind in {_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT}:
        return [_END]
    if kind in _REPEATS:
        _, most, repeated = value
        body = list(repeated)
        if len(body) == 1 and body[0][0] in _SINGLE:
            return [(_constants.MAX_REPEAT, (0, most, repeated)), _END]
        whole = _pattern(state, [part for item in body for part in _whole(item, state)])
        return [(_constants.MAX_REPEAT, (0, most, whole)), *_or_end(_beginnings(body, state), state)]
    if kind is _constants.SUBPATTERN:
        _, added, removed, inner = value
        return [(_constants.SUBPATTERN, (None, added, removed, _pattern(state, _beginnings(list(inner), state))))]
    if kind is _constants.BRANCH:
        return [(kind, (None, [_pattern(state, _beginnings(list(one), state)) for one in value[1]]))]
    raise NotImplementedError(str(kind))


def _or_end(nodes: list[_Node], state: Any) -> list[_Node]:
    return [(_constants.BRANCH, (None, [_pattern(state, [_END]), _pattern(state, nodes)]))]


def _whole(node: _Node, state: Any) -> list[_Node]:
    """Return what matches the whole node, without groups and lookahead."""
    kind, value = node
    if kind in _SINGLE or kind is _constants.ASSERT_NOT:
        return [node]
    if kind in {_constants.AT, _constants.ASSERT}:
        return []
    if kind in _REPEATS:
        least, most, repeated = value
        body = _pattern(state, [part for item in repeated for part in _whole(item, state)])
        return [(_constants.MAX_REPEAT, (least, most, body))]
    if kind is _constants.SUBPATTERN:
        _, added, removed, inner = value
        body = _pattern(state, [part for item in inner for part in _whole(item, state)])
        return [(kind, (None, added, removed, body))]
    if kind is _constants.BRANCH:
        alternatives = [[part for item in one for part in _whole(item, state)] for one in value[1]]
        return [(kind, (None, [_pattern(state, one) for one in alternatives]))]
    raise NotImplementedError(str(kind))
