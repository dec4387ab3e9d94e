"""Values of `--config key=value`, which Codex reads as TOML."""

from collections.abc import Mapping, Sequence

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
DELETE = "\x7f"


def toml_string(text: str) -> str:
    """A TOML basic string. A lone surrogate, which TOML has no word for, becomes "?"."""
    return '"' + "".join(map(_escaped, text.encode("utf-8", "replace").decode())) + '"'


def toml_list(texts: Sequence[str]) -> str:
    """A TOML array of strings."""
    return "[" + ", ".join(map(toml_string, texts)) + "]"


def toml_table(texts: Mapping[str, str]) -> str:
    """A TOML inline table of strings."""
    return "{" + ", ".join(f"{toml_string(key)} = {toml_string(value)}" for key, value in texts.items()) + "}"


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return f"\\u{ord(letter):04X}" if letter < " " or letter == DELETE else letter
