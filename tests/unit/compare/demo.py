"""A comparison with six candidates that end in different ways: records, real patches, and journals of recordings."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from tests.unit.testing.test_recorder import journal_of

from agent_evaluation.outcomes import TrialCause, TrialOutcome, TrialVerdict
from agent_mux.compare.records import (
    CandidateRecord,
    CheckResult,
    Comparison,
    ComparisonPlan,
    OutsideAccess,
    PatchedFile,
    RunUsage,
    StartRecord,
    StoredPatch,
    TestCaseResult,
    Trial,
    TrialAttempt,
)
from agent_mux.worktrees.git import COMPARED, PATCH_OPTIONS, read_differences

FIXTURES = Path(__file__).parents[3] / "fixtures"
BEGIN = 1_795_687_200_000  # 2026-11-26 10:00 UTC
GIT = shutil.which("git") or "git"

CART = """\
\"\"\"Prices of a cart.\"\"\"


def total(prices, discount=0):
    price = sum(prices)
    return price - discount - discount


def label(amount):
    return "%.2f EUR" % amount
"""
TEST = """\
from cart import label, total


def test_discount():
    assert total([10, 20], 5) == 25
"""
FIXED = CART.replace("price - discount - discount", "max(price - discount, 0)")
START = {"cart.py": CART, "test_cart.py": TEST, "README.md": "# Cart\n\nAdds prices.\n"}
RESULTS: dict[str, Mapping[str, str]] = {
    "claude": {
        "cart.py": FIXED,
        "test_cart.py": TEST + "\n\ndef test_no_negative_total():\n    assert total([1], 5) == 0\n",
    },
    "codex": {"cart.py": CART.replace("price - discount - discount", "price - discount")},
    "gemini": {"test_cart.py": TEST.replace("== 25", "== 20"), "pytest.ini": "[pytest]\naddopts = -k label\n"},
    "native": {},
    "pi": {},
    "opencode": {"cart.py": FIXED, "README.md": "# Cart\n\nAdds prices, and subtracts one disc", "notes.md": "- fix\n"},
}
RECORDINGS = {
    "claude": "claude/2.1.330/fix_failing_test",
    "codex": "codex/0.169.0/apply_patch_git",
    "gemini": "gemini/0.61.0/finish_max_tokens",
    "native": "native/0.1.0/deny",
    "pi": "pi/0.87.1/error_429_forever",
    "opencode": "opencode/1.18.33/finish_length",
}
OUTCOMES: dict[str, tuple[TrialVerdict, TrialCause, str, str]] = {
    "claude": ("pass", "completed", "completed", ""),
    "codex": ("fail", "completed", "completed", "failed: hidden"),
    "gemini": ("fail", "completed", "completed", "failed: pytest, hidden"),
    "native": ("fail", "denied", "completed", "failed: pytest, hidden"),
    "pi": ("infra", "rate_limited", "failed", "429: rate limit exceeded, retry after 3600 s"),
    "opencode": ("fail", "length", "completed", "failed: style"),
}
MODELS = {
    "claude": "claude-sonnet-5", "codex": "gpt-5.2", "gemini": "gemini-3-pro", "native": "claude-haiku-5",
    "pi": "gpt-5.2-mini", "opencode": "kimi-k3",
}  # fmt: skip
USAGE = {
    "claude": RunUsage(duration_ms=94_300, model_calls=5, tool_calls=4, input_tokens=57_243, output_tokens=3_479,
                       cached_tokens=48_220, cost_usd=0.1041, cost_source="native", agent_version="2.1.330"),
    "codex": RunUsage(duration_ms=61_800, model_calls=4, tool_calls=3, tool_errors=1, input_tokens=38_112,
                      output_tokens=1_804, cached_tokens=20_480, cost_usd=0.0512, cost_source="computed",
                      agent_version="0.169.0"),
    "gemini": RunUsage(duration_ms=48_100, model_calls=6, tool_calls=5, input_tokens=71_400, output_tokens=2_250,
                       cost_usd=0.0874, cost_source="computed", agent_version="0.61.0"),
    "native": RunUsage(duration_ms=12_400, model_calls=2, tool_calls=1, denials=1, input_tokens=4_210,
                       output_tokens=212, cost_usd=0.0006, cost_source="computed", agent_version="0.1.0"),
    "pi": RunUsage(duration_ms=9_700, model_calls=4, agent_version="0.87.1"),
    "opencode": RunUsage(duration_ms=127_900, model_calls=9, tool_calls=8, tool_errors=2, input_tokens=104_300,
                         output_tokens=8_192, agent_version="1.18.33"),
}  # fmt: skip
TOOLS = {
    "claude": ("Bash", "Read", "Edit", "Bash"),
    "codex": ("exec", "apply_patch", "exec"),
    "gemini": ("read_file", "read_file", "replace", "write_file", "run_shell_command"),
    "native": ("shell",),
    "pi": (),
    "opencode": ("read", "edit", "bash", "edit", "write", "bash", "edit", "edit"),
}
TEXTS = {
    "claude": "Fixed: `total` subtracted the discount twice. A total is never negative now; I added a test for it.",
    "codex": "The discount was applied twice. Fixed in cart.py.",
    "gemini": "All tests pass.",
    "native": "I was not permitted to edit cart.py.",
    "opencode": "I fixed the discount and began to document",
}
PROMPT = "Fix the failing test in test_cart.py. A discount larger than the price makes the total 0, never negative."


def demo_comparison(folder: Path) -> Comparison:
    """Write the folder of a comparison, and return its records."""
    folder.mkdir(parents=True, exist_ok=True)
    trees = Trees(folder)
    start = trees.store(START)
    trials = tuple(_trial(folder, trees, start, name) for name in RESULTS)
    return Comparison(
        plan=ComparisonPlan(
            id="01KB08XJ4Q6T9Z3V5N7M2R8W1C",
            created_at=BEGIN,
            version="0.9.0",
            prompt=PROMPT,
            candidates=tuple(
                CandidateRecord(name=name, kind="agent", agent=name, model=MODELS[name]) for name in RESULTS
            ),
            checks=({"name": "pytest", "command": "pytest -q"}, {"name": "hidden"}, {"name": "style"}),
            order=tuple(f"{name}-1" for name in ("codex", "claude", "pi", "opencode", "gemini", "native")),
            seed=8641,
            options={"timeout": 600, "parallel": 2},
        ),
        start=StartRecord(
            source="/home/dev/cart", subdirectory=".", is_repository=True, tree=start,
            base_commit="4f35088d6b2c1e9a7d3f5b8c0e2a4d6f8b1c3e5a", changed=("README.md",), included=(".env.test",),
            notes=("1 uncommitted file was carried over: README.md",),
        ),
        trials=trials,
        calibration=(_checks("start"), _checks("start")),
        status="ended",
    )  # fmt: skip


class Trees:
    """Tree objects in the private git directory of a comparison."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._directory = folder / "objects"
        self.git("init", "--quiet", "--bare", str(self._directory))

    def git(self, *words: str, **variables: str) -> str:
        environ = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **variables}
        done = subprocess.run(
            [GIT, *words], cwd=self._folder, env=environ, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    def store(self, files: Mapping[str, str | bytes]) -> str:
        """Return the tree object of these files."""
        work, own = self._folder / "work", {"GIT_DIR": str(self._directory)}
        shutil.rmtree(work, ignore_errors=True)
        for name, text in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.git("add", "--all", ".", **own, GIT_WORK_TREE=str(work))
        shutil.rmtree(work)
        return self.git("write-tree", **own).strip()

    def patch(self, trial: str, start: str, end: str) -> StoredPatch:
        """Write the patch between two trees."""
        own = {"GIT_DIR": str(self._directory)}
        path = self._folder / "trials" / trial / "changes.patch"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.git("diff-tree", "-r", "-p", *PATCH_OPTIONS, f"--output={path}", start, end, **own)
        files = read_differences(self.git("diff-tree", "-r", *COMPARED, start, end, **own))
        return StoredPatch(
            path=f"trials/{trial}/changes.patch",
            size=path.stat().st_size,
            files=tuple(
                PatchedFile(path=file.path, change=file.change, added=file.added, removed=file.removed)
                for file in files
            ),
            start=start,
            end=end,
        )  # fmt: skip


def _trial(folder: Path, trees: Trees, start: str, name: str) -> Trial:
    verdict, cause, reason, detail = OUTCOMES[name]
    outcome = TrialOutcome(verdict=verdict, cause=cause, exit_reason=reason, detail=detail)
    count = 3 if verdict == "infra" else 1
    return Trial(
        id=f"{name}-1",
        candidate=name,
        number=1,
        attempts=tuple(_attempt(folder, name, number, outcome) for number in range(1, count + 1)),
        outcome=outcome,
        checks=() if verdict == "infra" else _checks(name),
        patch=trees.patch(f"{name}-1", start, trees.store({**START, **RESULTS[name]})),
        tampered=("pytest.ini", "test_cart.py") if name == "gemini" else (),
        accesses=(OutsideAccess(path="/home/dev/cart/.git", tool="bash", detail="git -C /home/dev/cart log"),)
        if name == "opencode" else (),
        is_isolated=name != "gemini",
        survivors=("python3 -m http.server (pid 4711)",) if name == "codex" else (),
    )  # fmt: skip


def _attempt(folder: Path, name: str, number: int, outcome: TrialOutcome) -> TrialAttempt:
    usage = msgspec.structs.replace(USAGE[name], model=MODELS[name])
    begin = BEGIN + 4_000 + 17_000 * list(RESULTS).index(name) + 30_000 * (number - 1)
    journal = f"trials/{name}-1/attempt-{number}.journal"
    target = folder / journal
    target.parent.mkdir(parents=True, exist_ok=True)
    journal_of(FIXTURES / RECORDINGS[name], target.parent).rename(target)
    return TrialAttempt(
        number=number,
        run_id=f"01KB08XJ4Q6T9Z3V5N7M2R8{list(RESULTS).index(name)}{number}A",
        started_at=begin,
        ended_at=begin + usage.duration_ms,
        outcome=outcome,
        usage=usage,
        journal=journal,
        tools=TOOLS[name],
        text=TEXTS.get(name, ""),
    )


def _checks(name: str) -> tuple[CheckResult, ...]:
    visible = name in {"claude", "codex", "opencode"}
    hidden = name in {"claude", "opencode"}
    style = name != "opencode"
    failure = "E       assert 20 == 25\nE        +  where 20 = total([10, 20], 5)\n"
    return (
        CheckResult(
            name="pytest", status="pass" if visible else "fail", duration_ms=840, exit_code=0 if visible else 1,
            output="1 passed in 0.02s\n" if visible else f"{failure}1 failed in 0.03s\n",
            detail="" if visible else "exit code 1",
            tests=(TestCaseResult(name="test_cart.test_discount", status="pass" if visible else "fail",
                                  message="" if visible else "assert 20 == 25"),),
        ),
        CheckResult(
            name="hidden", status="pass" if hidden else "fail", duration_ms=610, exit_code=0 if hidden else 1,
            output="" if hidden else "E       assert -4 == 0\n", detail="" if hidden else "exit code 1",
        ),
        CheckResult(
            name="style", status="pass" if style else "fail", duration_ms=90, exit_code=0 if style else 1,
            detail="" if style else "README.md has no newline at its end",
        ),
    )  # fmt: skip
