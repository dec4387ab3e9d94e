"""The cause of a failed start is quoted, not the last line of a help text."""

from pathlib import Path

import pytest

from agent_mux.assembler import Ending
from agent_mux.assembler.outcome import determine_verdict
from agent_mux.assembler.stderr_cause import HELP_ONLY, find_cause

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.mark.parametrize(
    ("recording", "cause"),
    [
        ("claude/2.1.330/bad_flag", "error: unknown option '--no-such-flag'"),
        ("codex/0.169.0/bad_flag", "error: unexpected argument '--no-such-flag' found"),
        ("gemini/0.61.0/bad_flag", "Unknown argument: nope"),
        ("omp/18.2.3/bad_flag", "Error: unknown flag: --nope"),
        ("pi/0.73.1/bad_flag", "Error: Unknown option: --nope"),
    ],
)
def test_rejected_argument_is_quoted(recording: str, cause: str) -> None:
    stderr = (FIXTURES / recording / "stderr.txt").read_text("utf-8")
    verdict = determine_verdict(Ending(code=1, stderr=stderr[-8192:]), None, turn_open=False, agent="agent")
    assert verdict.failure is not None
    assert verdict.failure.message == f"agent exited with code 1 before its closing message: {cause}"


NODE = """file:///cli.js:1
throw new Error("boom")
^

Error: boom
    at main (file:///cli.js:1:7)
    at node:internal/main/run_main_module:28:49

Node.js v24.1.0
"""
PYTHON = """Traceback (most recent call last):
  File "cli.py", line 1, in <module>
    main()
ValueError: boom
"""
HELP = """
opencode serve

starts a headless opencode server

Options:
  -h, --help         show help                                                             [boolean]
      --port         port to listen on                                         [number] [default: 0]
      --mdns         enable mDNS service discovery (defaults hostname to 0.0.0.0)
                                                                          [boolean] [default: false]
      --cors         additional domains to allow for CORS                      [array] [default: []]
"""


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (NODE, "Error: boom"),
        (PYTHON, "ValueError: boom"),
        ("error: bad thing\nhelp: try another\n", "error: bad thing"),
        ("first\nlast\n\n", "last"),
        ("  indented only\n", "indented only"),
        ("", ""),
        (HELP, HELP_ONLY),
        (f"{HELP}Unknown option: --nope\n", "Unknown option: --nope"),
    ],
)
def test_line_that_reports_the_failure_is_found(stderr: str, cause: str) -> None:
    assert find_cause(stderr) == cause
