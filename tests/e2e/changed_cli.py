"""A simulated later version of a CLI: `python changed_cli.py PROGRAM [ARGUMENT...]`.

It prints the output of the program with an additional field in each message, and its help with an additional flag.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from agent_mux.sdk.framing import Framing, frame_message, new_framer

FIELD = "brandNew"
FLAG = "--brand-new"
HEAD = b"Content-Length:"
READ_SIZE = 65536


def install(program: Path, directory: Path) -> Path:
    """Write a wrapper of the program into a directory, and return its path.

    An interpreter beside the program gets a wrapper, too, because the program may be run with it.
    """
    folder = directory / "bin"
    folder.mkdir(parents=True)
    (directory / "pyvenv.cfg").touch()
    for real in (program, program.with_name("python")):
        if real.exists():
            command = " ".join(map(quote, (sys.executable, "-I", __file__, str(real))))
            changed = folder / real.name
            changed.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            changed.chmod(0o755)
    return folder / program.name


def main(command: Sequence[str]) -> int:
    """Run the program with changed output, and return its exit code."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        descriptor = child.stdout.fileno()
        chunk = os.read(descriptor, READ_SIZE)
        framing: Framing = "content-length" if chunk.startswith(HEAD) else "lines"
        framer = new_framer(framing)
        while chunk:
            write(framing, framer.feed(chunk))
            chunk = os.read(descriptor, READ_SIZE)
        write(framing, framer.finish())
    if "--help" in command:
        sys.stdout.write(f"{FLAG}\n")
    return child.returncode


def write(framing: Framing, messages: Sequence[bytes]) -> None:
    """Print messages, with the additional field in JSON objects."""
    for message in messages:
        changed = b'{"%b":1,%b' % (FIELD.encode(), message[1:]) if message.startswith(b'{"') else message
        sys.stdout.buffer.write(frame_message(framing, changed))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
