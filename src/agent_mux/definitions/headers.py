"""What a skill or a sub-agent says of itself: YAML between two lines of three hyphens, or a TOML file."""

import re
from pathlib import Path
from typing import Any, Literal

from agent_mux.documents import DocumentError, open_document
from agent_mux.errors import AgentMuxError

LARGEST = 1 << 20  # bytes of a file whose header is read
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)


def read_header(path: Path, kind: Literal["yaml", "toml"]) -> dict[str, Any]:
    """The header of a file. Raises CONFIG_ERROR where it has none, or none that can be read."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error
    front = _FRONT.match(text)
    if kind == "yaml" and front is None:
        missing = f"{path} has no header; it begins with a line ---, name: and description:, and another line ---"
        raise AgentMuxError("CONFIG_ERROR", missing)
    try:
        return open_document(front.group(1) if front is not None and kind == "yaml" else text, kind).data()
    except DocumentError as error:
        raise AgentMuxError("CONFIG_ERROR", f"the header of {path} cannot be read: {error}") from error
