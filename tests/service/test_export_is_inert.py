"""Exports show agent output and never run it, even when it contains scripts."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from tests.service.fuzzing import STORE, registry
from tests.service.serving import Serving, serving

from agent_mux.service.routes.sessions import file_name

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></script><svg onload=alert(1)>",
    "{title}{0.__class__}%s${x}",
    "javascript:alert(1)",
    "<!--<script>-->]]><iframe srcdoc='<script>alert(1)</script>'>",
    "&lt;script&gt;&#60;script&#62;",
    "' onmouseover='alert(1)",
    "\u2028<base href=//evil>\u202e",
    "\ud800",
]
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "article", "p", "pre",
    "details", "summary",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "name", "content", "http-equiv", "class"}
QUESTION, ANSWER = "first question", "claude-opus-5-5"


class Elements(HTMLParser):
    """Every element of a page, and every attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("home")
    folder = home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (source,) = STORE.rglob("1c2b5137-*.jsonl")
    for number, payload in enumerate(PAYLOADS):
        text = source.read_text().replace("1c2b5137-32b6-4a15-be24-b89dbb938b9b", f"session-{number}")
        for reply in (QUESTION, ANSWER, "/home/dev/project", "master"):
            text = text.replace(reply, json.dumps(payload)[1:-1])
        (folder / f"{number}.jsonl").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        with serving(home / "config", registry()) as server:
            yield server


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_a_page_has_our_elements_and_no_others(served: Serving, number: int) -> None:
    answer = served.http.get(f"/v1/sessions/claude/session-{number}/export", params={"format": "html"})
    assert answer.status_code == 200
    page = Elements()
    page.feed(answer.text)
    assert page.elements <= ALLOWED
    assert page.attributes <= ATTRIBUTES
    if PAYLOADS[number].isprintable():
        assert PAYLOADS[number] in page.text  # shown unchanged
    assert "default-src 'none'" in answer.text


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "html"])
@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_every_export_is_to_be_saved_and_not_to_be_guessed_about(served: Serving, number: int, form: str) -> None:
    answer = served.http.get(f"/v1/sessions/claude/session-{number}/export", params={"format": form})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="claude-session-')
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "script" not in policy
    if form == "json":
        assert answer.json()["summary"]["nativeId"] == f"session-{number}"


@pytest.mark.parametrize(
    "name", ['a"; filename="evil.exe', "a\r\nset-cookie: x=1", "../../etc/passwd", "ü" * 50, "<b>", "-", "x" * 500]
)
def test_no_id_leaves_the_name_of_the_file(name: str) -> None:
    made = file_name("claude", name, "html")
    assert made.isascii()
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    assert made.count(".") == 1
    assert 5 < len(made) < 100


def test_no_answer_of_the_service_is_a_page(served: Serving) -> None:
    for path in ("/v1/sessions", "/v1/sessions/claude/%3Cscript%3E", "/v1/%3Cscript%3Ealert(1)%3C/script%3E"):
        answer = served.http.get(path, headers={"accept": "text/html"})
        assert "html" not in answer.headers["content-type"]
