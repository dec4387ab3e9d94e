"""The messages with which code refuses something, collected from its source."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[3] / "src" / "agent_mux"
REFUSALS: Mapping[str, int] = {
    "AgentMuxError": 1,
    "RequestRefused": 1,
    "RetryLaterError": 1,
    "problem_response": 2,
    "status_response": 1,
    "usage_error": 0,
}
"""The position of the message among the arguments, by the function or class that takes it."""


class Refusal(NamedTuple):
    """One message, with `{}` for each value that is known at run time only."""

    place: str
    message: str


def refusals_in(package: str) -> Iterator[Refusal]:
    """Yield the messages of all refusals in a package of agent_mux, except those that another function composes."""
    for path in sorted((SOURCE / package).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                texts = _assigned_texts(function)
                for call in ast.walk(function):
                    message = _message_of(call, texts)
                    if message is not None:
                        yield Refusal(f"{path.relative_to(SOURCE)}:{call.lineno}", message)  # type: ignore[attr-defined]


def _message_of(node: ast.AST, texts: Mapping[str, str]) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    position = REFUSALS.get(name)
    return None if position is None or len(node.args) <= position else _text_of(node.args[position], texts)


def _assigned_texts(function: ast.AST) -> dict[str, str]:
    """Return the texts that a function assigns to variables."""
    texts: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _text_of(node.value, texts)
            if text is not None:
                texts[node.targets[0].id] = text
    return texts


def _text_of(node: ast.expr, texts: Mapping[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return texts.get(name)
        case ast.JoinedStr(values=values):
            parts = (
                _text_of(part.value, texts) or "{}" if isinstance(part, ast.FormattedValue) else None for part in values
            )
            return "".join(
                part if part is not None else _constant(value) for part, value in zip(parts, values, strict=True)
            )
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text_of(left, texts) or "{}") + (_text_of(right, texts) or "{}")
        case ast.IfExp(body=body, orelse=other):
            return _text_of(body, texts) or _text_of(other, texts)
    return None


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
