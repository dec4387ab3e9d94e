"""Every recorded approval request contains the command or the files that the rules of a policy match."""

from collections.abc import Iterator

import pytest
from tests.unit.adapters.codec_conversation import facts_of
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk.codec import Source
from agent_mux.sdk.facts import ApprovalRequested
from agent_mux.sdk.registry import AdapterRegistry

REGISTRY = AdapterRegistry()
AGENTS = ("acp", "claude", "codex", "copilot", "gemini", "hermes", "omp", "openclaw", "opencode", "pi")
SHELLS = frozenset({"Bash", "Shell", "bash", "execute", "powershell", "run_shell_command", "shell", "terminal", "exec"})
FILES = frozenset({"Edit", "Read", "Write", "apply_patch", "create", "edit", "replace", "view", "write", "write_file"})


def requests_of(recordings: Recordings) -> Iterator[ApprovalRequested]:
    for name in recordings.in_known_protocols:
        codec = recordings.codec(name)
        codec.start()
        for line in recordings.get(name).stdout_lines:
            emitted = facts_of(codec.receive(line, Source.STDOUT))
            yield from (fact for fact in emitted if isinstance(fact, ApprovalRequested))


@pytest.mark.parametrize("agent", AGENTS)
def test_recorded_requests_contain_the_command_or_the_files(agent: str) -> None:
    adapter = REGISTRY.get(agent)
    requests = list(requests_of(Recordings(adapter, next(iter(adapter.protocols)))))
    shown = [request for request in requests if not request.request_id.startswith("denied:")]
    assert shown
    for request in shown:
        if request.tool_name in SHELLS:
            assert request.command, request
            assert request.command in request.detail
        elif request.tool_name in FILES:
            assert request.paths, request
    assert any(request.command or request.paths for request in shown)
