"""Compare what two revisions print and write for every fixture.

    python tests/compare_outputs.py BASE

For each fixture: the output of `amux replay --json` (events and result). For one fixture of each native protocol: the
journal that `amux run replay` writes. Texts that agent-mux itself writes may differ; they are listed, each pair once.
Any other difference is an error: exit 1.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUN_ID = "00000000000000000000000000"
PER_RUN = {"startedAt", "started_at", "packageVersion", "package_version", "argv", "options", "marker", "prompt"}
"""Header fields that name the time, this version or a path of this machine."""
Outputs = dict[str, list[Any]]


def main() -> int:
    """Dump the outputs of both revisions, each with its own code, and report how they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("base", help="git revision to compare with")
    parser.add_argument("--journals", action="store_true", help="compare journals, too (half a minute)")
    parser.add_argument("--dump", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.dump:
        json.dump(dump(with_journals=arguments.journals), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "base"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, arguments.base], check=True)
        try:
            before, after = (outputs_of(path, journals=arguments.journals) for path in (tree, ROOT))
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)
    return report(before, after)


def outputs_of(tree: Path, *, journals: bool) -> Outputs:
    """Return what the code of a tree prints, by fixture."""
    environ = {
        **os.environ,
        "PYTHONPATH": f"{tree / 'src'}:{tree / 'adapters'}:{tree / 'testing'}",
        "AMUX_REPLAY_SPEED": "0",
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, __file__, "-", "--dump", *(["--journals"] if journals else [])]
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    outputs: Outputs = json.loads(done.stdout)
    return outputs


def dump(*, with_journals: bool) -> Outputs:
    """Replay every fixture with the code on `PYTHONPATH`."""
    outputs: Outputs = {}
    protocols: dict[tuple[str, str], Path] = {}
    for folder in sorted(path.parent for path in (ROOT / "fixtures").glob("*/*/*/run.toml")):
        name = str(folder.relative_to(ROOT / "fixtures"))
        outputs[name] = [json.loads(line) for line in _replayed(folder)]
        protocol = re.search(r'^protocol = "(.*)"', (folder / "run.toml").read_text(), re.MULTILINE)
        protocols.setdefault((name.split("/", 1)[0], protocol.group(1) if protocol else ""), folder)
    if with_journals:
        for folder in protocols.values():
            outputs[f"journal of {folder.relative_to(ROOT / 'fixtures')}"] = _journal(folder)
    return outputs


def _replayed(folder: Path) -> list[str]:
    from agent_mux.cli.main import main as amux  # that of the tree under test

    # The file descriptors themselves: the program writes to them in more than one way.
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as printed, Path(os.devnull).open("wb") as nowhere:
        os.dup2(printed.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            amux(["replay", str(folder), "--json"])
            sys.stdout.flush()
        finally:
            for number, descriptor in enumerate(kept, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        printed.seek(0)
        return [line for line in printed.read().decode().split("\n") if line]


def _journal(folder: Path) -> list[Any]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run.journal"
        command = [sys.executable, "-c", "from agent_mux.cli.main import main; main()", "run", "replay", str(folder)]
        flags = ["--quiet", "--yolo", "--run-id", RUN_ID, "--journal", str(path), "--timeout", "20"]
        subprocess.run([*command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        data = path.read_bytes() if path.exists() else b""
    joined: dict[str, bytes] = collections.defaultdict(bytes)
    for kind, payload in _records(data):
        joined[kind] += payload
    header = json.loads(joined.pop("H", b"{}"))
    rest = [{kind: payload.decode("utf-8", "replace")} for kind, payload in sorted(joined.items()) if kind in "OEI"]
    return [_without(header, PER_RUN), *rest]


def _records(data: bytes) -> Iterator[tuple[str, bytes]]:
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        kind, _, length = data[position:end].decode().split(" ")
        start, position = end + 1, end + 1 + int(length) + 1
        yield kind, data[start : start + int(length)]


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without(item, names) for name, item in value.items() if name not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def report(before: Outputs, after: Outputs) -> int:
    """Print how the outputs differ; return 1 when more than texts does."""
    texts: collections.Counter[tuple[str, str]] = collections.Counter()
    errors = [f"only in one revision: {name}" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        for path, old, new in _differences(before[name], after[name], ""):
            if isinstance(old, str) and isinstance(new, str):
                texts[old, new] += 1
            else:
                errors.append(f"{name}{path}: {old!r} -> {new!r}")
    for (old, new), count in texts.most_common():
        print(f"{count:6}  {old!r}\n     -> {new!r}")
    print(*errors, sep="\n")
    lines = sum(map(len, after.values()))
    print(f"{len(after)} outputs, {lines} lines, {len(texts)} texts differ, {len(errors)} other differences")
    return 1 if errors else 0


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for name in old:
            yield from _differences(old[name], new[name], f"{path}.{name}")
    elif old != new:
        yield path, old, new


if __name__ == "__main__":
    sys.exit(main())
