"""Tags that a person gave to stored sessions: kept on our side, for every agent, in one private file."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.options import MAX_TAG_LENGTH

FILE = "session-tags.json"


class _File(msgspec.Struct):
    v: int = 1
    tags: dict[str, list[str]] = {}
    """Tags by unified session id."""


def read_tags(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the tags by unified session id. Raises CONFIG_ERROR for a file that cannot be used."""
    text = read_text(path)
    if text is None:
        return {}
    try:
        return {session: tuple(tags) for session, tags in msgspec.json.decode(text, type=_File).tags.items()}
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{path} cannot be used: {error}; correct it, or remove it to lose these tags"
        raise AgentMuxError("CONFIG_ERROR", message) from error


def change_tags(
    config_dir: Path, session: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> tuple[str, ...]:
    """Add and remove tags of a session, by its unified id; return the tags that a person gave it now.

    Raises VALIDATION_ERROR for an invalid tag and for one to be removed that no person gave, CONFIG_ERROR.
    """
    path, gone = config_dir / FILE, tuple(remove)
    added = tuple(_check_tag(tag) for tag in add)
    with locked(path, locks=config_dir / "locks"):
        known = dict(read_tags(path))
        current = known.get(session, ())
        unknown = [tag for tag in gone if tag not in current]
        if unknown:
            allowed = f"a tag that `amux sessions tag` added ({', '.join(current) or 'none'}); tags of runs are kept"
            raise ValidationError([FieldError("remove", tag, allowed) for tag in unknown])
        known[session] = tuple(dict.fromkeys(tag for tag in (*current, *added) if tag not in gone))
        content = _File(tags={name: list(tags) for name, tags in known.items() if tags})
        write_text(path, msgspec.json.format(msgspec.json.encode(content)).decode() + "\n")
    return known[session]


def _check_tag(tag: str) -> str:
    if not tag.strip() or not tag.isprintable() or len(tag) > MAX_TAG_LENGTH:
        raise ValidationError([FieldError("tag", tag, f"1 to {MAX_TAG_LENGTH} printable characters")])
    return tag
