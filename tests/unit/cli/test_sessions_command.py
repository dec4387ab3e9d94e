"""`amux sessions` and `amux cost`, on the store of a real Claude Code."""

import csv
import io
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux import validate
from agent_mux.events import decode_event
from agent_mux.journal.run_index import append_line, encode_line, new_index_record

STORE = Path(__file__).parents[2] / "stores" / "claude" / "2.1.330" / "home"
LONG, ORIGIN, FORK = "1c2b5137", "7b278565", "126c36d9"


@pytest.fixture(autouse=True)
def home(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:  # it has a home of its own
    monkeypatch.setenv("HOME", str(STORE))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def data(done: Any) -> Any:
    answer = json.loads(done.out)
    assert (done.code, done.err, answer["ok"]) == (0, "", True)
    return answer["data"]


def test_a_listing_for_people(amux: Amux) -> None:
    done = amux("sessions", "list")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines() if line.strip()]
    assert lines[0] == ["session", "changed", "turns", "cost", "model", "directory", "title"]
    assert len(lines) == 5
    assert lines[2][0].startswith(f"claude:{LONG}")


def test_a_listing_for_programs(amux: Amux) -> None:
    listed = data(amux("sessions", "list", "--json", "--sort", "turns", "-n", 2))
    assert [one["turnCount"] for one in listed] == [5, 2]
    assert listed[0]["id"].startswith(f"claude:{LONG}")
    assert listed[0]["cost"]["source"] == "native"


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        (["--agent", "claude"], 3), (["-a", "claude-code"], 3), (["--cwd", "/home/dev/other"], 2),
        (["--model", "claude-opus-5-5"], 3), (["--model", "other"], 0), (["--since", "2026-11-22"], 3),
        (["--until", "2026-11-22"], 0), (["--until", "1m"], 3), (["--limit", "0"], 3), (["--limit", "1"], 1),
        (["--agent", "claude", "--dir", STORE / ".claude"], 3),
    ],
)  # fmt: skip
def test_filters_select_sessions(amux: Amux, monkeypatch: pytest.MonkeyPatch, flags: list[object], count: int) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert len(data(amux("sessions", "list", "--json", *flags))) == count


def test_unreadable_sessions_are_warnings(amux: Amux, tmp_path: Path) -> None:
    (tmp_path / "projects" / "x").mkdir(parents=True)
    (tmp_path / "projects" / "x" / "y.jsonl").write_bytes(b"noise\n")
    done = amux("sessions", "list", "-a", "claude", "--dir", tmp_path)
    assert done.code == 0
    warning = f"warning: {tmp_path}/projects/x/y.jsonl is skipped: it has no line that can be read\n"
    assert done.err == f"{warning}no stored session matches\n"


def test_unreadable_sessions_are_in_the_json(amux: Amux, tmp_path: Path) -> None:
    place = tmp_path / "projects" / "x"
    place.mkdir(parents=True)
    for number in range(12):
        (place / f"{number:02}.jsonl").write_bytes(b"noise\n")
    done = amux("sessions", "list", "-a", "claude", "--dir", tmp_path, "--json")
    answer = json.loads(done.out)
    assert (done.code, answer["ok"], answer["data"]) == (0, True, [])
    assert sorted(one["path"] for one in answer["skipped"]) == [f"{place}/{number:02}.jsonl" for number in range(12)]
    assert {(one["agent"], one["reason"]) for one in answer["skipped"]} == {
        ("claude", "it has no line that can be read")
    }
    warnings = done.err.splitlines()
    assert len(warnings) == 11
    assert warnings[-1] == "warning: 2 more files are skipped; `amux sessions list --json` names them"


def test_a_session_for_people(amux: Amux) -> None:
    done = amux("sessions", "show", LONG)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# first question\n")
    assert "## Assistant · claude-opus-5-5 · " in done.out
    assert "**general-purpose**" in done.out


def test_a_session_for_programs(amux: Amux) -> None:
    session = data(amux("sessions", "show", f"claude:{LONG}", "--json"))
    assert session["summary"]["turnCount"] == 5
    assert session["messages"][0] == {"role": "user", "at": session["summary"]["createdAt"], "text": "first question"}


def test_a_session_as_events(amux: Amux) -> None:
    done = amux("sessions", "show", ORIGIN, "--events")
    assert validate([decode_event(line) for line in done.out.splitlines()]) == []


def test_a_search(amux: Amux) -> None:
    done = amux("sessions", "search", "THIRD answer")
    assert (done.code, done.err) == (0, "")
    assert "Third answer." in done.out
    hits = data(amux("sessions", "search", "second question", "--json"))
    assert [hit["session"]["nativeId"][:8] for hit in hits] == [FORK]


@pytest.mark.parametrize(
    ("form", "begins"), [("json", "{"), ("jsonl", "{"), ("markdown", "# "), ("html", "<!doctype html>")]
)
def test_an_export(amux: Amux, tmp_path: Path, form: str, begins: str) -> None:
    path = tmp_path / "session"
    done = amux("sessions", "export", LONG, "-f", form, "-o", path)
    assert done == (0, "", f"wrote {path}\n")
    assert path.read_text().startswith(begins)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert amux("sessions", "export", LONG, "--format", form).out == path.read_text()
    again = amux("sessions", "export", LONG, "-f", form, "-o", path)
    assert (again.code, again.out) == (2, "")
    assert "already exists" in again.err


def test_an_export_with_json_is_json_or_refused(amux: Amux, tmp_path: Path) -> None:
    assert amux("sessions", "export", LONG, "--json") == amux("sessions", "export", LONG, "-f", "json")
    assert amux("sessions", "export", LONG, "-f", "jsonl", "--json").code == 0
    refused = amux("sessions", "export", LONG, "-f", "html", "--json")
    assert refused.code == 2
    assert "add --output FILE, or omit one of them" in json.loads(refused.out)["error"]["message"]
    path = tmp_path / "page.html"
    assert data(amux("sessions", "export", LONG, "-f", "html", "-o", path, "--json")) == {"path": str(path)}


def test_deletion_that_the_agent_cannot_do_is_refused_before_the_question(amux: Amux) -> None:
    refused = amux("sessions", "delete", LONG)
    assert (refused.code, refused.out) == (6, "")
    assert "claude does not support deleting sessions" in refused.err
    assert "--yes" not in refused.err


def test_a_comparison(amux: Amux) -> None:
    same, other = amux("sessions", "diff", ORIGIN, ORIGIN), amux("sessions", "diff", ORIGIN, FORK)
    assert (same.code, other.code) == (0, 1)
    assert "+ user: second question\n+ assistant: Second answer.\n" in other.out
    answer = json.loads(amux("sessions", "diff", ORIGIN, FORK, "--json").out)
    assert answer["data"]["common"] == 2


def test_costs_for_people(amux: Amux) -> None:
    done = amux("cost", "report")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"claude +\$0\.0075 +10 +1500 +120 +█{30}", done.out)


@pytest.mark.parametrize(("by", "name"), [("agent", "claude"), ("model", "claude-opus-5-5"), ("day", "2026-11-22")])
def test_costs_for_programs(amux: Amux, monkeypatch: pytest.MonkeyPatch, by: str, name: str) -> None:
    monkeypatch.setenv("TZ", "UTC")
    report = data(amux("cost", "report", "--json", "--by", by))
    [group] = report["groups"]
    assert (report["by"], group[by]) == (by, name)
    assert group["calls"] == report["total"]["calls"] == 10
    assert report["total"]["nativeUsd"] == pytest.approx(0.00746)
    [row] = csv.DictReader(io.StringIO(amux("cost", "report", "--csv", "--by", by).out))
    assert (row[by], row["calls"], float(row["native_usd"])) == (name, "10", pytest.approx(0.00746))


def test_agent_files_are_never_written(amux: Amux) -> None:
    before = {path: path.stat().st_mtime_ns for path in STORE.rglob("*")}
    for arguments in (["list"], ["show", LONG], ["search", "x"], ["diff", ORIGIN, FORK]):
        amux("sessions", *arguments)
    assert {path: path.stat().st_mtime_ns for path in STORE.rglob("*")} == before


@pytest.mark.parametrize("how", ["resume", "fork"])
def test_resuming_in_a_missing_directory_is_an_error(amux: Amux, how: str) -> None:
    done = amux("sessions", how, ORIGIN, "go on")
    assert (done.code, done.out) == (2, "")
    assert "/home/dev/other, the directory of claude:7b278565" in done.err
    assert "choose another with --cwd" in done.err


def test_an_empty_store_is_reported(amux: Amux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert amux("sessions", "list") == (0, "", "no stored session matches\n")
    assert amux("cost", "report") == (0, "", "no model calls are stored\n")
    assert amux("sessions", "search", "x") == (0, "", "no matches\n")
    assert data(amux("sessions", "list", "--json")) == []
    report = data(amux("cost", "report", "--json"))
    assert (report["groups"], report["total"]["calls"]) == ([], 0)


# -- tags


def tagged(place: Path, session: str, *tags: str) -> None:
    record = new_index_record(started_at=0, run_id="R", agent="claude", session_id=session, tags=tags)
    append_line(place / "run-index.jsonl", encode_line(record))


def test_sessions_and_costs_by_tag(amux: Amux, tmp_path: Path) -> None:
    whole = {one["nativeId"][:8]: one["nativeId"] for one in data(amux("sessions", "list", "--json"))}
    tagged(tmp_path / "config", whole[ORIGIN], "review", "nightly")
    tagged(tmp_path / "config", whole[LONG], "review")
    listed = data(amux("sessions", "list", "--json", "--tag", "review", "--tag", "nightly"))
    assert [(one["nativeId"], one["tags"]) for one in listed] == [(whole[ORIGIN], ["review", "nightly"])]
    assert "review, nightly" in amux("sessions", "list").out
    assert data(amux("sessions", "search", "answer", "--json", "--tag", "no-such-tag")) == []
    assert data(amux("cost", "report", "--json", "--tag", "no-such-tag"))["groups"] == []
    report = data(amux("cost", "report", "--json", "--by", "tag"))
    calls = {group["tag"]: group["calls"] for group in report["groups"]}
    assert set(calls) == {"review", "nightly", "(no tag)"}
    assert report["total"]["calls"] == 10 < sum(calls.values())


def test_a_tag_can_have_any_name(amux: Amux, tmp_path: Path) -> None:
    for session in (one["nativeId"] for one in data(amux("sessions", "list", "--json"))):
        tagged(tmp_path / "config", session, "total", "\x1b[2Jx")
    out = amux("cost", "report", "--by", "tag").out
    assert "\x1b" not in out
    assert [line.split()[0] for line in out.splitlines() if line.strip()][2:] == ["x", "total", "total"]


def test_tags_come_from_the_given_project(amux: Amux, tmp_path: Path) -> None:
    session = data(amux("sessions", "list", "--json"))[0]["nativeId"]
    tagged(tmp_path / "project", session, "p")
    project = ("--project-dir", tmp_path / "project")
    assert data(amux("sessions", "list", "--json", "--tag", "p")) == []
    for arguments in ((*project, "sessions", "list"), ("sessions", "list", *project)):
        assert [one["nativeId"] for one in data(amux(*arguments, "--json", "--tag", "p"))] == [session]
