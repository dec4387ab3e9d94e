"""Protected files: tests and their configuration, which an agent may edit, but whose edits never decide.

All changed files that match a pattern are restored to the start in the checkout in which the checks run. A change or
deletion of one is reported as tampering; a new file only if it can change how checks run (`conftest.py`, `pytest.ini`,
`sitecustomize.py`), because adding tests is ordinary work.

Files that also hold ordinary settings are not protected, because a fix may need a new dependency or target. Of those
with known settings of tests (`pyproject.toml`, `setup.cfg`, `package.json`) only these settings are restored
(`settings_of_tests`). The rest of them, and a `Makefile`, can change how checks run, too, so `unprotected_influences`
lists them for the report; `--protect Makefile` restores it.

Patterns have the syntax of `.gitignore`; `!pattern` excepts paths.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from agent_mux.compare.checks.settings_of_tests import NAMES
from agent_mux.compare.records import PatchedFile
from agent_mux.errors import AgentMuxError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

TESTS = (
    "test", "tests", "/spec", "__tests__", "__snapshots__", "__mocks__", "testdata", "test-data", "e2e", "cypress",
    # Python
    "test_*.py", "*_test.py", "tests.py",
    # JavaScript and TypeScript
    "*.test.[jt]s", "*.test.[jt]sx", "*.spec.[jt]s", "*.spec.[jt]sx",
    "*.test.[cm][jt]s", "*.spec.[cm][jt]s", "*-test.[jt]s", "*.snap",
    # Go, Rust, Ruby, Elixir, Dart, C++
    "*_test.go", "*_test.rs", "*_spec.rb", "*_test.rb", "*_test.exs", "*_test.dart", "*_test.cc", "*_test.cpp",
    # Java, Kotlin, Scala, C#, PHP, Swift
    "*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Spec.scala", "*Test.scala", "*Test.cs", "*Tests.cs",
    "*Test.php", "*Tests.swift",
)  # fmt: skip
"""Names of tests and their data. A name without a slash matches files and directories at every depth."""

CONFIGURATION = (
    # Python: configuration of tests, and files that an interpreter or pytest loads on its own
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "noxfile.py",
    ".coveragerc", "sitecustomize.py", "usercustomize.py", "*.pth", "pyvenv.cfg", "*.egg-info", "*.dist-info",
    "/pytest.py", "/pytest", "/_pytest", "/pluggy", "/unittest.py", "/unittest",
    # JavaScript and TypeScript
    "jest.config.*", "jest.setup.*", "jest-setup.*", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*",
    ".mocharc*", ".nycrc*", "karma.conf.*", "ava.config.*", "playwright.config.*", "cypress.config.*", "setupTests.*",
    # Rust, Ruby, PHP, .NET
    ".cargo/config", ".cargo/config.toml", ".config/nextest.toml", ".rspec", "phpunit.xml*", "*.runsettings",
)  # fmt: skip
"""Names of files that can change how checks run, wherever they are."""

INFLUENCES = (
    "Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.y*ml", "Rakefile", "build.xml", "pom.xml",
    "build.gradle*", "CMakeLists.txt", "package.json", "pyproject.toml", "setup.cfg", "setup.py", "Cargo.toml",
    "build.rs", "go.mod", "go.work", "vite.config.*", "babel.config.*", ".babelrc*", "tsconfig*.json", ".npmrc",
)  # fmt: skip
"""Names of ordinary files that can also change how checks run."""


class Protection:
    """The patterns of protected files, and the changes of a trial that match them."""

    def __init__(self, added: Sequence[str] = (), *, is_enabled: bool = True) -> None:
        """Combine the default patterns with further ones.

        Args:
            added: Patterns of `--protect`. A created file that matches one counts as tampered.
            is_enabled: False for `--no-protect`: nothing is protected, not even by `added`.

        Raises:
            AgentMuxError: VALIDATION_ERROR for an invalid pattern.
        """
        self.is_enabled = is_enabled
        self._added = tuple(added)
        for pattern in added:
            if not pattern.strip() or pattern.lstrip().startswith("#"):
                raise AgentMuxError("VALIDATION_ERROR", f"--protect {pattern!r} matches nothing; give a pattern")
            try:
                _spec((pattern,))
            except ValueError as error:
                message = f"--protect {pattern!r} is not a pattern: {error}; write it as in .gitignore"
                raise AgentMuxError("VALIDATION_ERROR", message) from error

    def protected(self, files: Sequence[PatchedFile]) -> tuple[str, ...]:
        """Return the paths to restore to the start before checks run, sorted: created files are removed."""
        return tuple(sorted(file.path for file in files if self._is_protected(file.path)))

    def tampered(self, files: Sequence[PatchedFile]) -> tuple[str, ...]:
        """Return the protected paths that the agent changed in a way that could decide checks, sorted."""
        return tuple(
            sorted(
                file.path
                for file in files
                if self._is_protected(file.path)
                and (file.change != "created" or self._configuration.match_file(file.path))
            )
        )

    def mixed(self, files: Sequence[PatchedFile]) -> tuple[str, ...]:
        """Return the changed paths whose settings of tests are to be restored, and nothing else of them, sorted."""
        if not self.is_enabled:
            return ()
        mixed = _spec((*NAMES, *self._added))
        return tuple(
            sorted(file.path for file in files if mixed.match_file(file.path) and not self._is_protected(file.path))
        )

    def unprotected_influences(self, files: Sequence[PatchedFile]) -> tuple[str, ...]:
        """Return changed paths that are not restored although they can change how checks run, sorted."""
        influences = _spec(INFLUENCES)
        return tuple(
            sorted(
                file.path for file in files if influences.match_file(file.path) and not self._is_protected(file.path)
            )
        )

    def _is_protected(self, path: str) -> bool:
        return self.is_enabled and self._all.match_file(path)

    @cached_property
    def _all(self) -> "GitIgnoreSpec":
        return _spec((*TESTS, *CONFIGURATION, *self._added))

    @cached_property
    def _configuration(self) -> "GitIgnoreSpec":
        return _spec((*CONFIGURATION, *self._added))


def _spec(patterns: Sequence[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # few commands need it

    return GitIgnoreSpec.from_lines(patterns)
