"""What the docstring of a function says of it and of its parameters, in Google's style."""

import inspect
import re
from dataclasses import dataclass, field

_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Example|Examples|Note|Notes):\s*")
_OF_PARAMETERS = frozenset({"Args", "Arguments", "Parameters"})
_PARAMETER = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Described:
    """A function in words."""

    description: str = ""
    """All before the first section."""
    parameters: dict[str, str] = field(default_factory=dict)


def described(docstring: str | None) -> Described:
    """The words of a docstring; nothing where there are none."""
    sections: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        heading = _SECTION.fullmatch(line)
        if heading:
            current = heading[1]
        sections.setdefault(current, []).extend([] if heading else [line])
    lines = [line for name in _OF_PARAMETERS & sections.keys() for line in sections[name]]
    return Described("\n".join(sections[""]).strip(), _parameters(lines))


def _parameters(lines: list[str]) -> dict[str, str]:
    """`name: words`, `name (type): words`; lines that are indented deeper go on."""
    filled = [line for line in lines if line.strip()]
    indent = min((_indent(line) for line in filled), default=0)
    found: dict[str, str] = {}
    name = ""
    for line in filled:
        start = _PARAMETER.fullmatch(line.strip()) if _indent(line) == indent else None
        if start:
            name = start[1]
            found[name] = start[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
