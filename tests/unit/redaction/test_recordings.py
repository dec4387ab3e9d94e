"""What real agents print has no keys in it, however much of it looks random: ids, hashes, blobs."""

from pathlib import Path

from agent_mux.redaction import Redactor

ROOT = Path(__file__).parents[3]
SPOKEN = ("stdout.jsonl", "stderr.txt", "stdin.jsonl", "events.jsonl")


def test_nothing_is_hidden_in_any_recording() -> None:
    redactor = Redactor()
    looked, found = 0, []
    for folder in (ROOT / "fixtures", ROOT / "tests", ROOT / "docs"):
        for path in sorted(file for file in folder.rglob("*") if file.name in SPOKEN):
            data = path.read_bytes()
            looked += len(data)
            found += [(str(path), data[start:end]) for start, end in redactor.find_secrets(data)[0]]
    assert found == []
    assert looked > 10_000_000
