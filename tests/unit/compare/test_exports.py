"""The exports of a comparison: complete, bounded, and inert whatever agents print."""

import shutil
import subprocess
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.unit.compare.demo import GIT, Trees, demo_comparison

from agent_mux.api.comparisons import ComparisonReport, DifferencesView, SharedChange, ToolComparison, ToolSequence
from agent_mux.compare.differences import diff_trials, differences_of, file_name, line_changes
from agent_mux.compare.export.html import MAX_PATCH, html_of
from agent_mux.compare.export.markdown import MAX_SIZE, code, fenced, markdown_of
from agent_mux.compare.export.sentences import difference_lines, selection_text
from agent_mux.compare.export.text import text_of
from agent_mux.compare.export.transcripts import KEPT_CARDS, read_transcript
from agent_mux.compare.records import Comparison, PatchedFile
from agent_mux.compare.report import report_of
from agent_mux.events import BaseEvent, decode_event
from agent_mux.run.derivation import codec_factory, derive_events
from agent_mux.sdk.registry import AdapterRegistry

CHROMIUM = shutil.which("chromium")
ATTACKS = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '"><svg onload="document.title=\'owned\'">',
    "</pre></details><a href=\"javascript:document.title='owned'\">x</a>",
    "[red]@octocat[/red] `` | [x](javascript:alert(1)) \x1b]0;owned\x07 \u202e",
)


def read_events(path: Path) -> Iterable[BaseEvent]:
    return derive_events(path, codec_factory(AdapterRegistry()))


def reported(comparison: Comparison, folder: Path) -> ComparisonReport:
    return report_of(comparison, differences=differences_of(comparison, folder))


def hostile(folder: Path) -> Comparison:
    comparison, attack = demo_comparison(folder), "".join(ATTACKS)
    replace = msgspec.structs.replace
    trials = []
    for trial in comparison.trials:
        assert trial.patch is not None
        (folder / trial.patch.path).write_text(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{attack}\n+{attack}\n", "utf-8")
        files = (PatchedFile(path=attack, change="modified", added=1, removed=1),)
        attempts = tuple(
            replace(each, text=attack, tools=(attack,), usage=replace(each.usage, model=attack))
            for each in trial.attempts
        )
        checks = tuple(replace(check, name=attack, output=attack, detail=attack) for check in trial.checks)
        trials.append(
            replace(
                trial, patch=replace(trial.patch, files=files), attempts=attempts, checks=checks, tampered=(attack,),
                notes=(attack,), survivors=(attack,),
            )
        )  # fmt: skip
    candidates = tuple(replace(each, model=attack) for each in comparison.plan.candidates)
    plan = replace(comparison.plan, prompt=attack, candidates=candidates)
    return replace(comparison, plan=plan, trials=tuple(trials), notes=(attack,))


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_hostile_texts_become_no_elements(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    page = html_of(reported(comparison, tmp_path), comparison, tmp_path, read_events)
    found = Elements(page)
    assert found.tags.count("script") == 1
    assert not {"img", "a", "iframe", "object", "link"} & set(found.tags)
    names = {name for name, _ in found.attributes}
    assert not [name for name in names if name.startswith("on") or name in {"style", "href", "src"}]
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_hostile_texts_run_nothing_in_a_browser(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    page = tmp_path / "page.html"
    page.write_text(html_of(reported(comparison, tmp_path), comparison, tmp_path, read_events), "utf-8")
    words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*words, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert f"<title>Comparison {comparison.plan.id}</title>" in shown


def test_markdown_of_hostile_texts_is_code(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    text = markdown_of(reported(comparison, tmp_path), comparison, tmp_path)
    assert "\x1b" not in text
    assert len(text) <= MAX_SIZE
    assert code("a``b`c|d") == "```a``b`c\\|d```"
    assert fenced("```\n<script>").startswith("````\n")


def test_text_reads_no_markup_and_prints_no_escape_sequences(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    text = text_of(reported(comparison, tmp_path), width=160, color=False)
    assert "[red]@octocat[/red]" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_table_fits_the_terminal(tmp_path: Path, width: int) -> None:
    comparison = demo_comparison(tmp_path)
    lines = text_of(reported(comparison, tmp_path), width=width, color=False).splitlines()
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    for words in ("claude", "fail: denied", "fail: length", "rate_limited", "$0.10", "unknown", "gate passed: claude"):
        assert words in shown


def test_differences_name_shared_files_changes_and_tools(tmp_path: Path) -> None:
    found = differences_of(demo_comparison(tmp_path), tmp_path)
    assert [(each.path, each.candidates) for each in found.by_some] == [
        ("cart.py", ["claude", "codex", "opencode"]),
        ("test_cart.py", ["claude", "gemini"]),
    ]
    assert [each.path for each in found.by_one] == ["README.md", "notes.md", "pytest.ini"]
    assert [(each.path, each.line, each.trials) for each in found.identical] == [
        ("cart.py", 6, ["claude-1", "opencode-1"])
    ]
    assert [(each.path, each.line) for each in found.overlapping] == [("cart.py", 6)]
    assert (found.tools.common, found.tools.trials[0].first_different) == ([], "Bash")


def test_results_of_two_trials_are_compared(tmp_path: Path) -> None:
    comparison = demo_comparison(tmp_path)
    assert comparison.start is not None
    claude, codex, _, native, *_ = comparison.trials

    def diff(first, second) -> str:
        return diff_trials(
            tmp_path, comparison.start, first, second, git=GIT, environ={"PATH": "/usr/bin:/bin"}, timeout=60
        )

    assert "-    return max(price - discount, 0)\n+    return price - discount\n" in diff(claude, codex)
    assert diff(native, native) == ""


def test_patches_with_unusual_names_are_read(tmp_path: Path) -> None:
    trees = Trees(tmp_path)
    names = ["a b.txt", "ü.txt", 'q"\\.txt']
    start = trees.store(dict.fromkeys(names, "one\n"))
    end = trees.store({**dict.fromkeys(names, "two\n"), "image.bin": bytes(range(256)) * 9})
    patch = trees.patch("x-1", start, end)
    text = (tmp_path / patch.path).read_text("utf-8")
    assert {change.path for change in line_changes(text)} == set(names)
    assert file_name("b/plain") == "plain"


def test_a_large_patch_is_cut_with_the_number_of_bytes(tmp_path: Path) -> None:
    comparison = demo_comparison(tmp_path)
    patch = comparison.trials[0].patch
    assert patch is not None
    path = tmp_path / patch.path
    path.write_bytes(b"+" + b"x" * 79 + b"\n")
    with path.open("r+b") as file:
        file.truncate(50 << 20)
    page = html_of(reported(comparison, tmp_path), comparison, tmp_path, read_events)
    assert f"{(50 << 20) - MAX_PATCH:,} of {50 << 20:,} bytes are not shown" in page
    assert "not compared" in page
    assert len(page) < 5_000_000


def test_a_long_transcript_keeps_its_beginning_and_end(tmp_path: Path) -> None:
    events = [
        decode_event(line)
        for line in (Path(__file__).parents[3] / "fixtures/claude/2.1.330/fix_failing_test/events.jsonl")
        .read_bytes().splitlines()
    ]  # fmt: skip
    one = read_transcript(tmp_path, lambda _: events)
    many = read_transcript(tmp_path, lambda _: (event for _ in range(200) for event in events))
    assert one.omitted == 0
    assert {"message", "tool"} <= {entry.kind for entry in one.entries}
    assert many.omitted > 1000
    assert many.omitted_after == KEPT_CARDS
    assert len(many.entries) <= 2 * KEPT_CARDS


def test_a_damaged_journal_is_stated(tmp_path: Path) -> None:
    comparison = demo_comparison(tmp_path)
    journal = comparison.trials[0].attempts[0].journal
    assert journal is not None
    (tmp_path / journal).write_bytes(b"nothing")
    assert "The journal cannot be read further" in html_of(
        reported(comparison, tmp_path), comparison, tmp_path, read_events
    )


def test_place_of_a_change_in_a_new_file_has_no_line() -> None:
    made = [SharedChange(path="new.txt", line=line, trials=["a-1", "b-1"], removed=[], added=["x"]) for line in (0, 3)]
    tools = ToolComparison(common=[], trials=[])
    differences = DifferencesView(
        by_all=[], by_some=[], by_one=[], identical=made, overlapping=made, tools=tools, unread=[]
    )
    assert list(difference_lines(differences)) == [
        "- same change: new.txt (a-1, b-1), new.txt:3 (a-1, b-1)",
        "- changed differently: new.txt (a-1, b-1), new.txt:3 (a-1, b-1)",
    ]


def test_selection_is_in_the_report_and_in_every_export(tmp_path: Path) -> None:
    comparison = demo_comparison(tmp_path)
    for strategy, winner in (("pick-first", "claude-1"), ("transparent", None)):
        report = report_of(comparison, strategy=strategy)
        assert (report.selection.strategy, report.selection.winner) == (strategy, winner)
        assert msgspec.to_builtins(report)["selection"]["strategy"] == strategy
        sentence = selection_text(report.selection)
        assert f"({strategy}: " in sentence
        assert sentence in text_of(report, width=200, color=False)
        assert f"`{sentence}`" in markdown_of(report, comparison, tmp_path)
        page = html_of(report, comparison, tmp_path, read_events)
        assert f"<h2>Selection</h2><p>{escape(sentence)}</p><ol><li>claude-1" in page
    assert report_of(comparison).selection.strategy == "checks-first"


def test_reasons_of_a_selection_are_no_markup(tmp_path: Path) -> None:
    comparison = hostile(tmp_path)
    replace = msgspec.structs.replace
    trials = []
    for trial in comparison.trials:
        assert trial.outcome is not None
        trials.append(replace(trial, outcome=replace(trial.outcome, detail="".join(ATTACKS))))
    found = replace(comparison, trials=tuple(trials))
    report = report_of(found)
    assert report.selection.excluded
    page = html_of(report, found, tmp_path, read_events)
    assert not {"img", "a", "iframe"} & set(Elements(page).tags)
    assert "\x1b" not in page


def test_tools_that_differ_are_listed_with_the_trials_that_call_them() -> None:
    nexts = {"a-1": "Bash", "b-1": None, "c-1": "Bash", "d-1": None}
    sequences = [ToolSequence(trial=trial, calls=1, counts={}, first_different=tool) for trial, tool in nexts.items()]
    tools = ToolComparison(common=["Read"], trials=sequences)
    differences = DifferencesView(
        by_all=[], by_some=[], by_one=[], identical=[], overlapping=[], tools=tools, unread=[]
    )
    assert list(difference_lines(differences)) == [
        "- tools: 1 call in common, then Bash (a-1, c-1), no further call (b-1, d-1)"
    ]
