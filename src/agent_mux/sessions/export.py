"""A session as a document: JSON, JSON lines, Markdown, or a self-contained HTML file."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from html import escape
from typing import Any, Literal

import msgspec

from agent_mux.sessions.conversation import Session, SessionMessage, ToolUse

Format = Literal["json", "jsonl", "markdown", "html"]
_ROLES = {"user": "User", "assistant": "Assistant"}


def export(session: Session, form: Format) -> str:
    """Return the document, which ends with a newline."""
    return "".join(_FORMS[form](session))


def _json(session: Session) -> Iterator[str]:
    yield msgspec.json.format(msgspec.json.encode(session), indent=2).decode() + "\n"


def _json_lines(session: Session) -> Iterator[str]:
    """Yield a line with the summary, then one line per message."""
    for kind, value in (("session", session.summary), *(("message", message) for message in session.messages)):
        yield msgspec.json.encode({"type": kind, **msgspec.to_builtins(value)}).decode() + "\n"


# -- Markdown


def _markdown(session: Session) -> Iterator[str]:
    yield f"# {_one_line(session.summary.title) or session.summary.id}\n\n"
    yield "".join(f"- {name}: {value}\n" for name, value in _properties(session))
    for message in session.messages:
        yield f"\n## {_heading(message)}\n"
        if message.thinking:
            yield "\n" + "".join(f"> {line}\n" for line in message.thinking.splitlines())
        if message.text:
            yield f"\n{message.text}\n"
        if message.error is not None:
            yield f"\n**error:** {message.error}\n"
        for tool in message.tools:
            yield f"\n**{tool.name}**\n\n{_fenced(_value_text(tool.input), 'json')}"
            if _result_text(tool):
                yield f"\n{_fenced(_result_text(tool))}"


def _fenced(text: str, language: str = "") -> str:
    """Return a code block. Its fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}\n"


# -- HTML

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }}
dt, time, summary, .thinking {{ opacity: 0.7; }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
article {{ border-left: 3px solid #8888; margin: 1.5rem 0; padding-left: 1rem; }}
article.user {{ border-color: #2a7ae2; }}
h2 {{ font-size: 1rem; margin: 0; }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
.thinking {{ font-style: italic; }}
pre {{ background: #8882; padding: 0.5rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }}
pre.error {{ border-left: 3px solid #c33; }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{about}</dl>
{messages}</body>
</html>
"""


def _html(session: Session) -> Iterator[str]:
    about = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n" for name, value in _properties(session))
    title = escape(_one_line(session.summary.title) or session.summary.id)
    yield _PAGE.format(title=title, about=about, messages="".join(map(_article, session.messages)))


def _article(message: SessionMessage) -> str:
    thinking = f'<p class="text thinking">{escape(message.thinking)}</p>\n' if message.thinking else ""
    text = f'<p class="text">{escape(message.text)}</p>\n' if message.text else ""
    text += f'<pre class="error">{escape(message.error)}</pre>\n' if message.error is not None else ""
    tools = "".join(map(_details, message.tools))
    return (
        f'<article class="{message.role}">\n<h2>{escape(_heading(message))}</h2>\n{thinking}{text}{tools}</article>\n'
    )


def _details(tool: ToolUse) -> str:
    kind = ' class="error"' if tool.error is not None else ""
    parts = [f"<summary>{escape(tool.name)}</summary>", f"<pre>{escape(_value_text(tool.input))}</pre>"]
    if _result_text(tool):
        parts.append(f"<pre{kind}>{escape(_result_text(tool))}</pre>")
    return "\n".join(("<details>", *parts, "</details>\n"))


# -- Markdown and HTML


def _properties(session: Session) -> list[tuple[str, str]]:
    summary = session.summary
    cost = summary.cost
    priced = "unknown" if cost.source == "unknown" else f"{cost.total_usd:.4f} USD ({cost.source})"
    properties = {
        "session": summary.id,
        "directory": summary.cwd,
        "branch": summary.branch,
        "began": None if summary.created_at is None else _time(summary.created_at),
        "changed": _time(summary.updated_at),
        "models": ", ".join(summary.models),
        "turns": str(summary.turn_count),
        "tokens": f"{cost.input_tokens} in, {cost.output_tokens} out, {cost.cached_tokens or 0} cached",
        "cost": priced,
        "forked from": summary.forked_from,
    }
    return [(name, _one_line(value)) for name, value in properties.items() if value]


def _heading(message: SessionMessage) -> str:
    parts = [_ROLES[message.role], message.model or "", "" if message.at is None else _time(message.at)]
    return " · ".join(_one_line(part) for part in parts if part)


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().isoformat(" ", "seconds")


def _result_text(tool: ToolUse) -> str:
    return tool.error if tool.error is not None else "" if tool.output is None else _value_text(tool.output)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_FORMS: Mapping[Format, Callable[[Session], Iterator[str]]] = {
    "json": _json,
    "jsonl": _json_lines,
    "markdown": _markdown,
    "html": _html,
}
