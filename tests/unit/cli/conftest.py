"""Run `amux` in this process and return its output and exit code."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_mux.cli.main import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


Amux = Callable[..., Done]


@pytest.fixture
def amux(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Amux:
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*arguments: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        return Done(code, *capfd.readouterr())

    return call


FIXTURES = Path(__file__).parents[3] / "fixtures"
CLAUDE = FIXTURES / "claude" / "2.1.330"
CODEX = FIXTURES / "codex" / "0.169.0"
