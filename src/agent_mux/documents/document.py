"""What every format can do."""

from typing import Any, Literal, Protocol

Format = Literal["json", "toml", "yaml"]
"""`json` is read with comments, trailing commas and the other freedoms of JSON5; what is written into it is JSON."""
FieldPath = tuple[str, ...]
"""The way to a value through tables and lists; a number, as text, counts items from 0."""


class DocumentError(ValueError):
    """The text is not of its format, or cannot be changed as asked. `line` and `column` count from 1; 0: unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem, line, column)
        self.problem, self.line, self.column = problem, line, column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.problem}" if self.line else self.problem


class Document(Protocol):
    """A text, and what it says."""

    @property
    def text(self) -> str:
        """As it is now."""
        ...

    def data(self) -> dict[str, Any]:
        """What it says, as plain values. Dates are ISO 8601 text."""
        ...

    def set(self, path: FieldPath, value: Any) -> None:
        """Say something else, or something new: tables on the way are made. Raises `DocumentError`."""
        ...

    def unset(self, path: FieldPath) -> bool:
        """Say it no more, nor the tables that are empty then. False: it was not said."""
        ...
