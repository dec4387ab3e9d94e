"""What is known about quotas: the newest report in recordings of runs and in stored sessions."""

import json
from pathlib import Path

import pytest
from tests.process.scripted import scripted_adapter
from tests.unit.run.scripted_run import RUN_ID, STARTED_AT, header, line, printed

from agent_mux import AgentMuxError, QuotaWindow
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Control, Kind, Record, encode
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.quota import MAX_RECORDINGS, AgentQuota, Quotas

HALF = {"usedPercent": 50, "windowDurationMins": 300, "resetsAt": 1_795_300_000}


def write_run(directory: Path, number: int, *lines: bytes) -> str:
    directory.mkdir(exist_ok=True)
    run_id = f"{number:026d}"
    head = header()
    writer = JournalWriter(directory / f"{run_id}.journal", head)
    writer.append(Record(Kind.CONTROL, 0, encode(Control("start"))))
    for record in printed(*lines, at=1000):
        writer.append(record)
    writer.close()
    return run_id


def write_rollout(home: Path, name: str, *limits: object) -> None:
    folder = home / ".codex/sessions/2026/11/22"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"type": "session_meta", "payload": {"id": name}}]
    rows += [{"type": "event_msg", "payload": {"type": "token_count", "rate_limits": one}} for one in limits]
    stamped = [json.dumps({"timestamp": f"2026-11-22T10:00:{index:02d}Z", **row}) for index, row in enumerate(rows)]
    (folder / f"rollout-2026-11-22T10-00-00-{name}.jsonl").write_text("\n".join(stamped) + "\n")


@pytest.fixture
def quotas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quotas:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(""))
    return Quotas(adapters, tmp_path / "runs")


def test_nothing_is_known_without_reports(quotas: Quotas, tmp_path: Path) -> None:
    assert quotas.list() == []
    write_run(tmp_path / "runs", 1, line(text="x"))
    (tmp_path / "runs" / "9.journal").write_text("no journal")
    write_rollout(tmp_path, "a", None, {"primary": None})
    assert quotas.list() == []
    assert quotas.get("scripted") is None
    assert not (tmp_path / ".agent-mux").exists()


def test_newest_recording_with_a_report_counts(quotas: Quotas, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, line(quota=[["five_hour", 0.1]]))
    write_run(tmp_path / "runs", 2, line(quota=[["five_hour", 0.2]]), line(text="x"), line(quota=[["seven_day", 0.3]]))
    write_run(tmp_path / "runs", 3, line(text="x"))
    expected = AgentQuota(
        agent="scripted",
        observed_at=STARTED_AT + 3,
        windows=(QuotaWindow("five_hour", 0.2), QuotaWindow("seven_day", 0.3)),
        run_id=RUN_ID,
    )
    assert quotas.list() == [expected]
    assert quotas.get("scripted") == expected


def test_only_the_newest_recordings_are_read(quotas: Quotas, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 0, line(quota=[["five_hour", 0.1]]))
    for number in range(1, MAX_RECORDINGS + 1):
        write_run(tmp_path / "runs", number, line(text="x"))
    assert quotas.list() == []


def test_stored_sessions_have_reports(quotas: Quotas, tmp_path: Path) -> None:
    write_rollout(tmp_path, "a", {"primary": {"used_percent": 1, "resets_at": 1_795_300_000}}, {"primary": HALF})
    known = quotas.get("codex")
    assert known is not None
    assert (known.session_id, known.run_id, known.observed_at) == ("codex:a", None, 1_795_341_602_000)
    assert known.windows == (
        QuotaWindow("primary", 0.01, 1_795_300_000_000),
        QuotaWindow("five_hour", 0.5, 1_795_300_000_000),
    )


def test_unknown_agent_is_an_error(quotas: Quotas) -> None:
    with pytest.raises(AgentMuxError) as raised:
        quotas.get("nobody")
    assert raised.value.code == "AGENT_NOT_FOUND"
