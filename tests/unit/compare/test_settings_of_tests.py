"""Settings of tests in ordinary files: a trial cannot decide with them, and its other edits stay."""

import os
import sys
from pathlib import Path

import pytest

from agent_mux.compare.checks.definitions import CommandCheck
from agent_mux.compare.checks.settings_of_tests import NAMES, WHOLE, with_test_settings
from agent_mux.compare.frozen_start import FrozenStart
from agent_mux.compare.judging import JudgedTrial, TrialJudge
from agent_mux.compare.places import Places
from agent_mux.compare.request import ComparisonRequest

PYPROJECT = """\
# Comments stay.
[project]
name = "calc"   # with spaces
dependencies = [
  "a",
]

[tool.pytest.ini_options]
addopts = "-q"  # quiet

[tool.black]
line-length = 100
"""
SETUP_CFG = "[metadata]\nname = calc\n\n[tool:pytest]\naddopts = -q\n\n[flake8]\nmax-line-length = 100\n"
PACKAGE = """\
{
  "name": "calc",
  "scripts": { "build": "tsc",  "test": "python3 -m pytest -q" },
  "jest": {"bail": true},
  "dependencies": {}
}
"""
STARTS = {"pyproject.toml": PYPROJECT, "setup.cfg": SETUP_CFG, "package.json": PACKAGE}


def restored(name: str, end: str | None, start: str | None = "") -> tuple[str | None, tuple[str, ...]]:
    before = STARTS[name] if not start and start is not None else start
    content, changed = with_test_settings(
        name, None if before is None else before.encode(), None if end is None else end.encode()
    )
    return None if content is None else content.decode(), changed


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pyproject.toml", '  "a",\n', '  "a",\n  "b",\n'),
        ("pyproject.toml", "line-length = 100", "line-length=88"),
        ("setup.cfg", "name = calc\n", "name = calc\ninstall_requires =\n    b\n"),
        ("package.json", '"dependencies": {}', '"dependencies": {"left-pad": "1"}'),
        ("package.json", '"build": "tsc"', '"build": "esbuild"'),
    ],
)
def test_ordinary_edit_keeps_its_bytes(name: str, old: str, new: str) -> None:
    edited = STARTS[name].replace(old, new)
    assert edited != STARTS[name]
    assert restored(name, edited) == (edited, ())


@pytest.mark.parametrize(
    ("name", "old", "new", "setting"),
    [
        ("pyproject.toml", 'addopts = "-q"', 'addopts = "--collect-only"', "tool.pytest"),
        ("setup.cfg", "addopts = -q", "addopts = --collect-only", "[tool:pytest]"),
        ("package.json", "python3 -m pytest -q", "exit 0", "scripts.test"),
        ("package.json", '{"bail": true}', '{"testMatch": []}', "jest"),
    ],
)
def test_changed_setting_is_restored_beside_an_ordinary_edit(name: str, old: str, new: str, setting: str) -> None:
    edited = STARTS[name].replace("calc", "calculator")
    content, changed = restored(name, edited.replace(old, new))
    assert changed == (setting,)
    assert content is not None
    assert "calculator" in content
    assert new not in content
    if setting in {"[tool:pytest]", "scripts.test"}:  # comments and spaces inside of a replaced table are lost
        assert content == edited


@pytest.mark.parametrize(
    ("name", "added", "setting"),
    [
        ("pyproject.toml", '\n[tool.coverage.run]\nomit = ["*"]\n', "tool.coverage"),
        ("pyproject.toml", '\n[project.entry-points.pytest11]\nx = "x"\n', "project.entry-points.pytest11"),
        ("pyproject.toml", '\n[tool.tox]\nlegacy_tox_ini = ""\n', "tool.tox"),
        ("setup.cfg", "\n[coverage:run]\nomit = *\n", "[coverage:run]"),
        ("setup.cfg", "\n[tox:tox]\nenvlist = none", "[tox:tox]"),
    ],
)
def test_added_settings_are_removed(name: str, added: str, setting: str) -> None:
    content, changed = restored(name, STARTS[name] + added)
    assert changed == (setting,)
    assert content is not None
    assert content.rstrip("\n") == STARTS[name].rstrip("\n")


@pytest.mark.parametrize("key", ["jest", "mocha", "vitest", "ava", "nyc"])
def test_added_configuration_of_a_runner_is_removed(key: str) -> None:
    start = '{"name": "x"}\n'
    assert restored("package.json", f'{{"name": "x", "{key}": {{"x": 1}}}}\n', start) == (start, (key,))


@pytest.mark.parametrize("script", ["pretest", "posttest", "test:unit"])
def test_added_scripts_around_tests_are_removed(script: str) -> None:
    edited = PACKAGE.replace('"build": "tsc", ', f'"build": "tsc", "{script}": "true", ')
    content, changed = restored("package.json", edited)
    assert changed in {(f"scripts.{script}",), (f'scripts."{script}"',)}
    assert content is not None
    assert script not in content


def test_created_file_loses_settings_of_tests_only() -> None:
    content, changed = restored("pyproject.toml", '[project]\nname = "x"\n\n[tool.pytest]\naddopts = "-q"\n', None)
    assert (content, changed) == ('[project]\nname = "x"\n', ("tool.pytest",))


def test_deleted_file_comes_back_only_with_settings_of_tests() -> None:
    assert restored("setup.cfg", None) == (SETUP_CFG, (WHOLE,))
    assert restored("setup.cfg", None, "[metadata]\nname = x\n") == (None, ())


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("pyproject.toml", PYPROJECT + "]["),
        ("package.json", PACKAGE + "}"),
        ("package.json", "[" * 100_000),
        ("setup.cfg", "no section\n" + SETUP_CFG),
        ("pyproject.toml", PYPROJECT + "#" * (1 << 20)),
    ],
)
def test_file_that_cannot_be_read_is_taken_from_the_start(name: str, broken: str) -> None:
    assert restored(name, broken) == (STARTS[name], (WHOLE,))


def test_second_key_of_the_same_name_does_not_survive() -> None:
    content, changed = restored("package.json", PACKAGE.replace('"jest"', '"jest": {"x": 1},\n  "jest"'))
    assert not changed  # every parser takes the last one, which is that of the start
    content, changed = restored("package.json", PACKAGE.replace('"name"', '"jest": {"x": 1},\n  "name"') + " ")
    content, changed = restored("package.json", PACKAGE.replace('{"bail": true}', '{"bail": true}, "jest": {"x": 1}'))
    assert changed
    assert content is not None
    assert '"x"' not in content.rpartition('"jest"')[2]


def test_header_that_only_some_parsers_see_is_noticed() -> None:
    for hidden in ("x = 1\x0c[tool:pytest]\naddopts = --co\n", "\n[x]\n [coverage:run]\nomit = *\n"):
        content, changed = restored("setup.cfg", SETUP_CFG + hidden)
        assert changed
        assert content is not None
        assert "--co" not in content
        assert "omit" not in content


def test_file_that_was_broken_in_the_start_is_left_to_the_trial() -> None:
    fixed = '[tool.pytest]\naddopts = "-q"\n'
    assert restored("pyproject.toml", fixed, "[tool.pytest") == (fixed, ())


def test_names_are_those_of_files_without_directory() -> None:
    assert all("/" not in name for name in NAMES)


class Project:
    """A project with a failing test, whose trials are edits of files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        source = path / "source"
        source.mkdir()
        (source / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        (source / "test_calc.py").write_text("from calc import add\n\ndef test_add():\n    assert add(2, 2) == 4\n")
        (source / "run_script.py").write_text(
            "import json, subprocess, sys\n"
            "command = json.load(open('package.json'))['scripts']['test'].replace('python3', sys.executable)\n"
            "sys.exit(subprocess.call(command, shell=True))\n"
        )
        for name, text in STARTS.items():
            if name != "setup.cfg":
                (source / name).write_text(text)
        self._start = FrozenStart.freeze(source, path / "comparison", os.environ)

    def judge(self, edits: dict[str, str], command: tuple[str, ...], *, is_protected: bool = True) -> JudgedTrial:
        request = ComparisonRequest(
            prompt="fix it",
            candidates=(),
            checks=(CommandCheck(name="tests", command=command),),
            has_protection=is_protected,
        )
        environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a faster start
        places = Places(self._path, "X", "off")
        judge = TrialJudge(request, self._start, places, environ)
        workspace = self._start.make_workspace(self._path / f"trial-{is_protected}")
        for name, text in edits.items():
            (workspace.path / name).parent.mkdir(exist_ok=True)
            (workspace.path / name).write_text(text)
        tree = workspace.snapshot()
        patch = workspace.write_patch(self._path / "changes.patch", "changes.patch", tree)
        try:
            return judge.judge(tree, patch, None, lambda: True)
        finally:
            places.close()


PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
SCRIPT = (sys.executable, "run_script.py")
PLUGIN = "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 0]\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n"  # noqa: E501
CHEATS = [
    ({"pyproject.toml": PYPROJECT.replace("-q", "--collect-only")}, PYTEST),
    ({"pyproject.toml": PYPROJECT.replace("-q", "-p cheat"), "cheat.py": PLUGIN}, PYTEST),
    (
        {
            "pyproject.toml": PYPROJECT.replace('"-q"', '"-q"\ntestpaths = ["other"]\npython_files = ["good*.py"]'),
            "other/good_one.py": "def test_one():\n    pass\n",
        },
        PYTEST,
    ),
    ({"package.json": PACKAGE.replace("python3 -m pytest -q", "true")}, SCRIPT),
]


@pytest.mark.slow
@pytest.mark.parametrize(("edits", "command"), CHEATS, ids=["addopts", "plugin", "testpaths", "script"])
def test_settings_of_a_trial_do_not_decide(edits: dict[str, str], command: tuple[str, ...], tmp_path: Path) -> None:
    project = Project(tmp_path)
    judged = project.judge(edits, command)
    assert judged.checks[0].status == "fail"
    assert len(judged.tampered) == 1
    # Otherwise the trial passes: the edit is a cheat.
    assert project.judge(edits, command, is_protected=False).checks[0].status == "pass"


@pytest.mark.slow
def test_fix_with_a_new_dependency_passes_without_tampering(tmp_path: Path) -> None:
    edits = {"calc.py": "def add(a, b):\n    return a + b\n", "pyproject.toml": PYPROJECT.replace('"a",', '"a", "b",')}
    judged = Project(tmp_path).judge(edits, PYTEST)
    assert (judged.checks[0].status, judged.tampered) == ("pass", ())
