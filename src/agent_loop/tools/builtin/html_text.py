"""Convert HTML to plain text for a model: headings, lists, links and preformatted text stay recognizable."""

from html.parser import HTMLParser
from urllib.parse import urljoin

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul",
})  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CELLS = frozenset({"td", "th"})


def text_of_html(html: str, base_url: str) -> str:
    """Return the text of a page. Links are absolute, behind their text in parentheses. Accepts invalid HTML."""
    parser = _TextParser(base_url)
    parser.feed(html)
    parser.close()
    return parser.text()


class _TextParser(HTMLParser):
    def __init__(self, base_url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base_url = base_url
        self._lines: list[str] = [""]
        self._skipping: list[str] = []
        """The open elements whose content is skipped."""
        self._preformatted = 0
        self._links: list[str] = []

    def text(self) -> str:
        """Return the text so far, with at most one empty line in a row."""
        lines: list[str] = []
        for line in (each.rstrip() for each in self._lines):
            if line or (lines and lines[-1]):
                lines.append(line)
        return "\n".join(lines).strip("\n")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipping.append(tag)
        if self._skipping:
            return
        if tag in _HEADINGS or tag in _BLOCKS:
            self._break(_HEADINGS.get(tag, ""))
        elif tag == "li":
            self._break("- ", blank=False)
        elif tag in _CELLS and self._lines[-1]:
            self._lines[-1] += " | "
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag == "img" and (alternative := dict(attrs).get("alt")):
            self._add(f"[image: {alternative}]")
        self._preformatted += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipping:
            del self._skipping[self._skipping.index(tag) :]
            return
        if self._skipping:
            return
        if tag == "a" and self._links:
            link = self._links.pop()
            if link and not link.startswith(("#", "javascript:", "data:")):
                self._add(f" ({self._absolute(link)})")
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._preformatted = max(0, self._preformatted - (tag == "pre"))
            self._break()

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._add(data)

    def _absolute(self, link: str) -> str:
        try:
            return urljoin(self._base_url, link)
        except ValueError:
            return link

    def _add(self, data: str) -> None:
        if self._preformatted:
            first, *rest = data.split("\n")
            self._lines[-1] += first
            self._lines += rest
            return
        words = " ".join(data.split())
        line = self._lines[-1]
        if data[:1].isspace() and line and not line.endswith(" "):
            self._lines[-1] += " "
        self._lines[-1] += words + (" " if words and data[-1:].isspace() else "")

    def _break(self, begin: str = "", *, blank: bool = True) -> None:
        """Begin a line, after an empty one if `blank`."""
        if self._lines[-1].strip(" -#"):
            self._lines += ["", ""] if blank else [""]
        elif begin:
            self._lines[-1] = ""
        self._lines[-1] += begin
