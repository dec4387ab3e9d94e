"""Which formats of secrets redaction finds, and what it takes for secrets in source code that has none."""

import json
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from agent_mux.redaction import Redactor
from benchmarks.measure import report, verdict
from benchmarks.secret_formats import Sample, samples

SEEDS = 20
CORPUS_MIB = 75
"""At most, from each root; fewer if it has less."""
MAX_FALSE_PER_MIB = 196 / 144
SUFFIXES = frozenset(
    {".py", ".pyi", ".js", ".mjs", ".cjs", ".ts", ".json", ".md", ".yaml", ".yml", ".toml", ".txt", ".sh"}
)
_MAX_FILE = 4 << 20
_MIN_PART = 8  # characters; a shorter field occurs elsewhere by chance


def main(scratch: Path) -> None:  # noqa: ARG001  # the signature of a benchmark
    """Print one row per format, and the false positives."""
    rows = [
        f"{name:24} {count / SEEDS:6.0%}, missed {verdict(1 - count / SEEDS, most=0.05)}"
        for name, count in _recall().items()
    ]
    report(f"Recall of {len(rows)} formats, {SEEDS} invented secrets each, plain and in JSON", rows)
    size, found = _false_positives()
    mib = size / 2**20
    share = found / mib if mib else 0.0
    report(
        f"False positives, {mib:,.0f} MiB of source code (site-packages, agents in the cache)",
        [f"spans             {found:6}", f"per MiB           {share:6.2f} {verdict(share, most=MAX_FALSE_PER_MIB)}"],
    )


def _recall() -> dict[str, int]:
    found: dict[str, int] = {}
    for seed in range(SEEDS):
        for name, sample in samples(seed).items():
            found[name] = found.get(name, 0) + _is_hidden(sample)
    return found


def _is_hidden(sample: Sample) -> bool:
    texts = (sample.text, json.dumps({"text": f"see\n{sample.text}\nand more"}))
    masked = [Redactor().mask_text(text) for text in texts]
    return not any(
        secret[-_MIN_PART:] in text for text in masked for secret in sample.secrets if len(secret) > _MIN_PART
    )


def _false_positives() -> tuple[int, int]:
    """Return the size of the corpus in bytes and the number of secrets found in it."""
    cache = Path(os.environ.get("AMUX_AGENT_CACHE") or Path.home() / ".cache" / "agent-mux" / "agents")
    redactor = Redactor()
    size = found = 0
    for root in (Path(sysconfig.get_path("purelib")), cache):
        remaining = CORPUS_MIB << 20
        for path in _source_files(root):
            data = path.read_bytes()
            if len(data) <= remaining:
                remaining -= len(data)
                size += len(data)
                found += len(redactor.find_secrets(data)[0])
    return size, found


def _source_files(root: Path) -> Iterator[Path]:
    """Yield the source files in a fixed order, without copies of the same name and size."""
    seen: set[tuple[str, int]] = set()
    for directory, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix not in SUFFIXES or path.is_symlink():
                continue
            key = name, path.stat().st_size
            if key[1] <= _MAX_FILE and key not in seen:
                seen.add(key)
                yield path
