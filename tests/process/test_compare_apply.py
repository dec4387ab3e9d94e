"""`amux compare apply`: what it reports about a trial that changed tests, and about changes that conflict."""

import shutil
from pathlib import Path

import pytest
from tests.process.compared_agents import make_repository

from agent_mux.cli.main import main

PATCH = """\
diff --git a/test_calc.py b/test_calc.py
--- a/test_calc.py
+++ b/test_calc.py
@@ -4,4 +4,4 @@

 class Add(unittest.TestCase):
     def test(self):
-        self.assertEqual(add(2, 2), 4)
+        self.assertEqual(add(2, 2), 0)
"""


@pytest.mark.slow
def test_applied_trial_names_the_tests_that_it_changed_and_a_conflict_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project, config = make_repository(tmp_path / "project"), str(tmp_path / "config")
    monkeypatch.chdir(project)
    patch = tmp_path / "tests.patch"
    patch.write_text(PATCH)
    words = ["compare", "fix it", "--with", f"oracle:{patch}", "--check", "python3 -m unittest -q"]
    assert main([*words, "--config-dir", config]) == 2  # the oracle fails, as the checks use the original test
    assert main(["compare", "apply", "oracle", "--config-dir", config]) == 0
    printed = capfd.readouterr().err
    assert "warning: oracle-1 changed files of the checks: test_calc.py" in printed
    assert "checks: python3 -m unittest -q pass" in printed
    test = project / "test_calc.py"
    test.write_text(test.read_text().replace("add(2, 2), 0", "add(2, 2), 1"))
    assert main(["compare", "apply", "oracle", "--config-dir", config]) == 1
    assert "which is unchanged: conflicts in test_calc.py; merge them by hand: amux compare diff oracle-1" in (
        capfd.readouterr().err
    )
    assert "add(2, 2), 1" in test.read_text()
    shutil.rmtree(config)
