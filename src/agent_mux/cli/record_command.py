"""`amux record`: run an agent and keep what crossed its boundary as a fixture."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.run_command import Words, carry_out, exit_code_of, settle_format, settled_with
from agent_mux.cli.run_flags import RunFlags, with_run_flags

if TYPE_CHECKING:
    from agent_mux.run.result import RunResult

Folder = Annotated[
    Path,
    typer.Option("--to", metavar="FOLDER", help="Where the fixture goes; its name is that of the scenario."),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a fixture that is there.", show_default=False)]
Note = Annotated[str, typer.Option("--note", help="What the fixture is about.", show_default=False)]


@with_run_flags
def record(
    context: typer.Context, flags: RunFlags, to: Folder, words: Words = None, force: Force = False, note: Note = ""
) -> int:
    """Give an agent a task, and save the conversation as a fixture folder.

    The folder has run.toml, stdout.jsonl, stdin.jsonl, stderr.txt, times.json, exit.json and the events (events.jsonl,
    compact). Home, working directory and temp directory are made neutral; look for other secrets before you share it.
    """
    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.server import refuse_service

    settle_format(context.obj, flags)
    refuse_service(flags, "record")
    if flags.no_journal:
        raise bad_input("--no-journal leaves nothing to make a fixture of")
    _check_folder(to, force=force)
    settled = settled_with(words or [], flags)
    if settled.options.journal is False:  # a file says so
        settled = replace(settled, options=replace(settled.options, journal=True))
    result = carry_out(settled, flags, context.obj)
    _save(result, to, note)
    return exit_code_of(result)


def _check_folder(folder: Path, *, force: bool) -> None:
    """Never write over what is no fixture, nor over a fixture unasked."""
    from agent_mux.cli.errors import bad_input

    if not folder.exists():
        return
    if not folder.is_dir():
        raise bad_input(f"{folder} is not a folder")
    if any(folder.iterdir()) and not (force and (folder / "run.toml").exists()):
        raise bad_input(f"{folder} is not empty; --force writes over a fixture")


def _save(result: "RunResult", folder: Path, note: str) -> None:
    """Make the fixture, and say so."""
    import anyio

    from agent_mux.detection import Detector
    from agent_mux.errors import AgentMuxError
    from agent_mux.registry import AdapterRegistry
    from agent_mux.run.journal import JournalReader
    from agent_mux.testing.recorder import save_run

    if result.journal is None:
        raise AgentMuxError("INTERNAL", "nothing was recorded: the journal could not be written")
    journal, adapters = Path(result.journal), AdapterRegistry()
    agent = JournalReader(journal).header.codec.agent
    version = anyio.run(Detector(adapters).detect, agent).version
    save_run(journal, folder, adapters.get(agent), version=version or "unknown", note=note)
    sys.stderr.write(f"recorded in {folder}\n")
