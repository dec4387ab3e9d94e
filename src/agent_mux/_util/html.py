"""A small HTML box for notebooks: a title, rows of names and values, and a text. Everything is escaped."""

from collections.abc import Mapping
from html import escape

from agent_mux._util.sanitize import reveal, sanitize

MAX_TEXT = 20_000
"""Longest text that is shown, in characters."""
_BOX = "border:1px solid #8884;border-radius:6px;padding:8px 12px;font-family:sans-serif"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;margin:8px 0 0"


def notebook_box(title: str, rows: Mapping[str, object], text: str = "") -> str:
    """Return HTML with a title, the rows that have a value, and the text as it is written.

    The values may come from an agent, so they are escaped: none can become an element, an attribute or a script.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{_plain(name)}</th><td style='text-align:left'>{_plain(value)}</td></tr>"
        for name, value in rows.items()
        if value not in (None, "")
    )
    shown = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n... ({len(text) - MAX_TEXT:,} more characters)"
    body = f"<pre style='{_TEXT}'>{_plain(shown)}</pre>" if text else ""
    return f"<div style='{_BOX}'><b>{_plain(title)}</b><table>{cells}</table>{body}</div>"


def _plain(value: object) -> str:
    return escape(reveal(sanitize(str(value))), quote=True)
