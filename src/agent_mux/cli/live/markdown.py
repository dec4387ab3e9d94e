"""Markdown as styled lines: blocks are rendered as soon as they are complete.

rich is imported for the first block that needs it; plain paragraphs are only wrapped.
"""

import re
from functools import cache
from typing import Any, ClassVar

from agent_mux.cli.layout import wrap

LONGEST_BLOCK = 40_000
"""Characters after which a block is rendered although it is not complete."""
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBER = "markdown.item.number"
WIDEST = 120
"""Columns of prose; longer lines are hard to read."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_MARKDOWN = re.compile(
    r"[`*_#|\[<>~\\&]|^\s*(?:[-+]|\d{1,9}[.)])\s|^\s*[-=]{3,}\s*$|^(?: {4}|\t)|https?:", re.MULTILINE
)


class BlockSplitter:
    """Splits growing Markdown at the blank lines between its blocks; lists and fenced code are one block."""

    def __init__(self) -> None:
        self._partial: list[str] = []
        """Fragments of the line that is not complete."""
        self._lines: list[str] = []
        self._size = 0
        self._fence = ""
        self._blank = False
        """Whether the last line of the block is blank."""

    def feed(self, delta: str) -> list[str]:
        """Add text and return the blocks that are complete now."""
        self._size += len(delta)
        if "\n" not in delta:
            self._partial.append(delta)
            return [self._take()] if self._size > LONGEST_BLOCK else []
        *whole, rest = ("".join(self._partial) + delta).split("\n")
        self._partial = [rest] if rest else []
        return [block for line in whole for block in self._line(line) if block.strip()]

    @property
    def rest(self) -> str:
        """The block that is not complete."""
        return "\n".join([*self._lines, "".join(self._partial)])

    def finish(self) -> list[str]:
        """End the text and return its last block."""
        block = self._take()
        return [block] if block.strip() else []

    def _line(self, line: str) -> list[str]:
        done: list[str] = []
        fence = _FENCE.match(line)
        if self._fence:
            self._lines.append(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                if not self._is_list:
                    done.append(self._take_lines())
        elif not line.strip():
            self._lines.append(line)
            self._blank = True
        else:
            if self._blank and not self._continues(line):
                done.append(self._take_lines())
            if fence:
                if self._lines and not self._is_list:
                    done.append(self._take_lines())
                self._fence = fence[1]
            self._lines.append(line)
            self._blank = False
        if self._size > LONGEST_BLOCK:
            done.append(self._take_lines())
        return done

    @property
    def _is_list(self) -> bool:
        return bool(self._lines) and _LIST_ITEM.match(self._lines[0]) is not None

    def _continues(self, line: str) -> bool:
        return self._is_list and (line.startswith((" ", "\t")) or _LIST_ITEM.match(line) is not None)

    def _take_lines(self) -> str:
        block, self._lines = "\n".join(self._lines), []
        self._blank, self._size = False, sum(map(len, self._partial))
        return block

    def _take(self) -> str:
        block = self.rest
        self._partial, self._lines, self._fence, self._blank, self._size = [], [], "", False, 0
        return block


def render_markdown(text: str, width: int, *, styled: bool) -> list[str]:
    """Render one sanitized block. Without styles, what they mean is left to the layout."""
    width = max(min(width, WIDEST), 20)
    if _MARKDOWN.search(text) is None:
        return [row for line in text.strip("\n").split("\n") for row in wrap(line.rstrip(), width)]
    console, markdown = _rich()
    lines = console.render_lines(markdown(text.strip("\n")), console.options.update(width=width), pad=False)
    return _trim([_row(segments, styled=styled) for segments in lines])


def _trim(rows: list[str]) -> list[str]:
    while rows and not rows[0].strip():
        rows.pop(0)
    while rows and not rows[-1].strip():
        rows.pop()
    return rows


def _row(segments: Any, *, styled: bool) -> str:
    parts = [(segment.text, segment.style) for segment in segments if not segment.control]
    while parts and not parts[-1][0].strip() and not (parts[-1][1] and parts[-1][1].underline):
        parts.pop()
    if parts:
        parts[-1] = (parts[-1][0].rstrip(), parts[-1][1])
    from rich.color import ColorSystem

    if not styled:
        return "".join(text for text, _ in parts)
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD, legacy_windows=False) if style and text else text
        for text, style in parts
    )


def _inline_tokens(tokens: list[Any]) -> list[Any]:
    """Return inline tokens with line breaks for `<br>`, and without the links whose text is their address.

    rich prints the address of a link behind its text.
    """
    for token in tokens:
        if token.type == "text":
            token.content = _LINE_BREAK.sub("\n", token.content)
    result: list[Any] = []
    position = 0
    while position < len(tokens):
        link = tokens[position : position + 3]
        is_repeated = len(link) == 3 and link[0].type == "link_open" and link[2].type == "link_close"
        if is_repeated and link[1].content == link[0].attrs.get("href"):
            result.append(link[1])
            position += 3
        else:
            result.append(tokens[position])
            position += 1
    return result


@cache
def _rich() -> Any:
    """Return a console and a function that makes a renderable of Markdown."""
    from io import StringIO

    from markdown_it import MarkdownIt  # a dependency of rich
    from rich.console import Console
    from rich.markdown import CodeBlock, Heading, ListItem, Markdown
    from rich.padding import Padding
    from rich.segment import Segment
    from rich.syntax import Syntax
    from rich.text import Text
    from rich.theme import Theme

    class LeftHeading(Heading):
        """A heading at the left, without a frame."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            level = int(self.tag.removeprefix("h"))
            text = self.text
            text.justify = "left"
            text.stylize("bold underline" if level == 1 else "bold")
            yield text

    class PlainCode(CodeBlock):
        """Code in the colours of the terminal, on its background, indented."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            code = str(self.text).rstrip()
            shown: Any = (
                Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
                if self.lexer_name not in {"", "text"}
                else Text(code)
            )
            yield Padding(shown, (0, 0, 0, 2))

    class PointedItem(ListItem):
        """An item of a list, with a point behind its number."""

        def render_number(self, console: Any, options: Any, number: int, last_number: int) -> Any:
            numeral = f" {number}. ".rjust(len(str(last_number)) + 3)
            lines = console.render_lines(self.elements, options.update(width=options.max_width - len(numeral)))
            for position, line in enumerate(lines):
                yield Segment(numeral if position == 0 else " " * len(numeral), console.get_style(_NUMBER))
                yield from line
                yield Segment.line()

    class BlockMarkdown(Markdown):
        """Markdown with headings at the left, code without a frame, and each address once."""

        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": LeftHeading,
            "fence": PlainCode,
            "code_block": PlainCode,
            "list_item_open": PointedItem,
        }

        def __init__(self, markup: str, **options: Any) -> None:
            super().__init__("", **options)
            self.markup, self.parsed = markup, parser.parse(markup)
            for token in self.parsed:
                token.children = _inline_tokens(token.children or [])

    # rich leaves HTML out; without it in the grammar, `<name>` and `List<String>` are text.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    theme = Theme({
        "markdown.code": "cyan", "markdown.code_block": "none", "markdown.link_url": "dim", "markdown.link": "none",
        "markdown.item.bullet": "dim", "markdown.item.number": "dim", "markdown.block_quote": "dim",
    })  # fmt: skip
    console = Console(file=StringIO(), force_terminal=True, color_system="standard", theme=theme, width=80)

    def markdown(text: str) -> Any:
        return BlockMarkdown(text, hyperlinks=False, code_theme="ansi_dark")

    return console, markdown
