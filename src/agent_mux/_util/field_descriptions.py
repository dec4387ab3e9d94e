"""What the fields of our classes mean: the strings below them in the source, which Python does not keep."""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def meanings_of(kind: type) -> dict[str, str]:
    """Attribute -> what it means, with those of the classes it is made of. Empty where the source is not at hand."""
    known: dict[str, str] = {}
    for base in reversed(kind.__mro__[1:]):
        if base.__module__.startswith("agent_mux"):
            known |= meanings_of(base)
    return known | _own(kind)


def _own(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # made at run time, or installed without its source
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
