"""Descriptions of the fields of `agent_loop`'s hook contexts: the string below each field in the source."""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def field_strings_of(kind: type) -> dict[str, str]:
    """Return the description of each attribute of a class, inherited ones included; empty without source code."""
    inherited: dict[str, str] = {}
    for base in reversed(kind.__mro__[1:]):
        if base.__module__.startswith("agent_loop"):
            inherited |= field_strings_of(base)
    return inherited | _own_descriptions(kind)


def _own_descriptions(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # created at run time, or installed without its source
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
