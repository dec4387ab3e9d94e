"""`amux runs diff`: the changes of a run as a unified diff."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation


def print_changes(invocation: "Invocation", run: str | None, config_dir: Path | None) -> int:
    """Print the diff on standard output; files whose content the agent did not report, on standard error."""
    from agent_mux.cli.run_selection import find_local, remote_id
    from agent_mux.cli.terminal import is_terminal, one_line, sanitize

    others: list[str] = []
    if invocation.service is not None:
        patch = invocation.service.client().runs.patch(remote_id(invocation.service, run))
        text = patch.decode("utf-8", "replace")
    else:
        _, record = find_local(run, config_dir)
        text, others = _reported_changes(record.journal)
    if invocation.json:
        from agent_mux.cli.command_output import print_json

        print_json({"diff": text, "withoutDiff": others})
        return 0
    sys.stdout.write(sanitize(text) if is_terminal(sys.stdout) else text)
    for other in others:
        sys.stderr.write(f"no diff was reported: {one_line(other, 1000)}\n")
    if not text and not others:
        sys.stderr.write("the run changed no file\n")
    return 0


def _reported_changes(journal: str | None) -> tuple[str, list[str]]:
    """Return the diffs in the events of a run so far, and the changed files that have none."""
    from agent_mux.cli.recordings import open_journal
    from agent_mux.errors import AgentMuxError
    from agent_mux.events import FileCreateEvent, FileDeleteEvent, FilePatchEvent, FileWriteEvent
    from agent_mux.sdk.registry import AdapterRegistry

    if journal is None:
        raise AgentMuxError("VALIDATION_ERROR", "the run has no recording, so its changes are unknown; see `git diff`")
    diffs: list[str] = []
    patched: set[str] = set()
    others: dict[str, str] = {}
    for event in open_journal(Path(journal), AdapterRegistry()).events:
        match event:
            case FilePatchEvent():
                diffs.append(event.diff if event.diff.endswith("\n") else event.diff + "\n")
                patched.add(event.path)
            case FileCreateEvent() | FileWriteEvent():
                others[event.path] = "created" if isinstance(event, FileCreateEvent) else "written"
            case FileDeleteEvent():
                others[event.path] = "deleted"
    return "".join(diffs), [f"{path} ({how})" for path, how in others.items() if path not in patched]
