"""TOML documents, edited in place by tomlkit."""

import tomllib
from datetime import date, datetime, time
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import Table

from agent_mux.sdk.documents.document import MISSING, DocumentError, FieldPath, value_at


class TomlDocument:
    """A TOML text. Raises `DocumentError` if it is invalid."""

    def __init__(self, text: str) -> None:
        try:
            self._document = tomlkit.parse(text)
        except ParseError as error:
            raise DocumentError(str(error).partition(" at line ")[0], error.line, error.col + 1) from error
        except TOMLKitError as error:
            raise DocumentError(str(error)) from error

    @property
    def text(self) -> str:
        """See `Document.text`."""
        return tomlkit.dumps(self._document)

    def data(self) -> dict[str, Any]:
        """Return the content, see `Document.data`."""
        return cast(dict[str, Any], _plain(tomllib.loads(self.text)))

    def set(self, path: FieldPath, value: Any) -> None:
        """Set a field, see `Document.set`. TOML has no null."""
        current = value_at(self.data(), path)
        if current == value and type(current) is type(value):
            return
        holder: Any = self._document
        for depth, part in enumerate(path[:-1]):
            if isinstance(holder, list):
                holder = _list_item(holder, part)
                continue
            if not isinstance(holder, dict):
                raise DocumentError(f"{path[depth - 1]!r} is not a table, so {part!r} cannot be set in it")
            if part not in holder:
                _insert(holder, part, tomlkit.table(is_super_table=depth < len(path) - 2))
            holder = holder[part]
        self._assign(holder, path, value)

    def _assign(self, holder: Any, path: FieldPath, value: Any) -> None:
        try:
            if isinstance(holder, list) and path[-1] == str(len(holder)):
                holder.append(value)
            elif isinstance(holder, list):
                holder[holder.index(_list_item(holder, path[-1]))] = value
            elif isinstance(holder, dict):
                _insert(holder, path[-1], tomlkit.item(value))
            else:
                raise DocumentError(f"{path[-2]!r} is not a table, so {path[-1]!r} cannot be set in it")
        except (TOMLKitError, ValueError, TypeError) as error:
            raise DocumentError(f"TOML cannot represent {value!r}") from error

    def unset(self, path: FieldPath) -> bool:
        """Remove a field, see `Document.unset`."""
        if value_at(self.data(), path) is MISSING:
            return False
        before = self.text
        holders: list[Any] = [self._document]
        for part in path[:-1]:
            holder = holders[-1]
            holders.append(_list_item(holder, part) if isinstance(holder, list) else holder[part])
        for holder, part in reversed(list(zip(holders, path, strict=True))):
            del holder[int(part) if isinstance(holder, list) else part]
            if len(holder):
                break
        self._document = tomlkit.parse(_strip_new_blank_lines(before, self.text))
        return True


def _strip_new_blank_lines(before: str, after: str) -> str:
    """Remove the blank line that separated a removed table from the rest of the text."""
    if after.startswith("\n") and not before.startswith("\n"):
        after = after[1:]
    return after[:-1] if after.endswith("\n\n") and not before.endswith("\n\n") else after


def _insert(holder: Any, key: str, item: Any) -> None:
    """Insert after the last key of a table, before trailing comments: those belong to the next table."""
    container = getattr(holder, "value", None)
    body = getattr(container, "body", None)
    trailing: list[Any] = []
    if body is not None and key not in holder and not isinstance(item, Table):
        while body and body[-1][0] is None:
            trailing.insert(0, body.pop())
    holder[key] = item
    if body is not None:
        body.extend(trailing)


def _list_item(items: list[Any], part: str) -> Any:
    if not part.isdigit() or int(part) >= len(items):
        raise DocumentError(f"the list has no item {part!r}")
    return items[int(part)]


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
    return value
