"""Promises about the package as a whole."""

import ast
import subprocess
import sys
from pathlib import Path

import agent_mux

SOURCE = Path(agent_mux.__file__).parent
AGENTS = {"claude", "codex", "gemini", "copilot", "cursor", "opencode", "pi", "omp", "openclaw", "hermes"}

PUBLIC = {
    "AgentEvent", "AgentMux", "AgentMuxError", "Approve", "Attachment", "AuthError", "BlockingAgentMux",
    "BlockingRemoteMux", "BlockingRun", "Breach", "CapabilityError", "Choice", "Deny", "ErrorCode", "FieldError",
    "McpServer", "PendingInteraction", "Policy", "RemoteMux", "RemoteRun", "RetryPolicy", "Rule", "Run",
    "RunError", "RunHandle", "RunOptions", "RunResult", "Text", "TokenUsage", "ValidationError", "Worktree",
    "__version__",
    "decode_event", "encode_event", "parse_transcript", "read_policy", "validate",
}  # fmt: skip


def test_the_public_names_are_pinned_and_all_there() -> None:
    assert set(agent_mux.__all__) == PUBLIC
    assert dir(agent_mux) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(agent_mux, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(agent_mux, "no_such_name")


def test_the_core_knows_no_agent_by_name() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in AGENTS:
                found.append(f"{path}:{node.lineno}: {node.value!r}")
    assert found == []


def test_saying_the_version_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['amux', '--version']\n"
        "from agent_mux.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'anyio', 'typer', 'rich', 'msgspec', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.splitlines()[0].endswith(agent_mux.__version__)
    assert done.stdout.splitlines()[-1] == "[]"
