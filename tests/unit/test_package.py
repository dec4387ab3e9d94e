"""The package as a whole: public names, agent names, and the start of the command line."""

import ast
import subprocess
import sys
from pathlib import Path

import agent_mux
from agent_mux.sdk.registry import AdapterRegistry

SOURCE = Path(agent_mux.__file__).parent
AGENTS = set(AdapterRegistry().names()) - {"acp", "native", "replay", "terminal"}  # words with other meanings, too

PUBLIC = {
    "AgentEvent", "AgentMux", "AgentMuxError", "ApprovalDetail", "Approve", "Attachment", "AuthError",
    "BlockingAgentMux", "BlockingRemoteMux", "BlockingRun",
    "Breach", "CapabilityError", "ChangedFile", "Choice", "Defer", "Denial",
    "Deny", "ErrorCode", "FieldError",
    "McpServer", "PendingInteraction", "Policy", "RemoteMux", "RemoteRun", "RetryPolicy", "Rule", "Run",
    "QuotaWindow", "RunAttempt", "RunError", "RunHandle",
    "RunOptionFields", "RunOptions", "RunResult", "Text", "TokenUsage", "Tool", "Block", "ValidationError", "Worktree",
    "AdapterRegistry", "ApprovalMode", "AttachedRun", "BaseEvent", "Boundary", "ComparisonRun", "CostRecord",
    "Delivery", "ExitReason", "HookCall", "HookDecision", "HookType", "InputDetail", "InteractionChannel",
    "MissingExtraError", "ResolvedOptions", "Responder", "Response", "RunPlan", "RunState", "UnknownEvent",
    "__version__",
    "decode_event", "encode_event", "parse_transcript", "read_policy", "validate",
}  # fmt: skip


def test_public_names_are_pinned_and_importable() -> None:
    assert set(agent_mux.__all__) == PUBLIC
    assert dir(agent_mux) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(agent_mux, name) is not None


def test_unknown_name_raises_attribute_error() -> None:
    assert not hasattr(agent_mux, "no_such_name")


def test_core_contains_no_agent_name() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in AGENTS:
                found.append(f"{path}:{node.lineno}: {node.value!r}")
    assert found == []


def test_no_path_of_an_unknown_user_raises() -> None:
    """`Path.expanduser` raises for `~unknown/file`; `os.path.expanduser` leaves it as it is, as shells do."""
    sources = (*SOURCE.parent.rglob("*.py"), *(SOURCE.parents[1] / "adapters").rglob("*.py"))
    assert [str(path) for path in sources if ".expanduser()" in path.read_text("utf-8")] == []


def test_version_option_imports_no_slow_package() -> None:
    code = (
        "import sys; sys.argv = ['amux', '--version']\n"
        "from agent_mux.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'anyio', 'typer', 'rich', 'msgspec', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.splitlines()[0].endswith(agent_mux.__version__)
    assert done.stdout.splitlines()[-1] == "[]"
