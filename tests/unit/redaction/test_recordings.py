"""No false positives in the output of real agents, which contains ids, hashes and other random text."""

from pathlib import Path

from agent_mux.redaction import Redactor

ROOT = Path(__file__).parents[3]
RECORDED = ("stdout.jsonl", "stderr.txt", "stdin.jsonl", "events.jsonl")


def test_recordings_of_real_agents_contain_no_secrets() -> None:
    redactor = Redactor()
    size, found = 0, []
    for folder in (ROOT / "fixtures", ROOT / "tests", ROOT / "docs"):
        for path in sorted(file for file in folder.rglob("*") if file.name in RECORDED):
            data = path.read_bytes()
            size += len(data)
            found += [(str(path), data[start:end]) for start, end in redactor.find_secrets(data)[0]]
    assert found == []
    assert size > 10_000_000
