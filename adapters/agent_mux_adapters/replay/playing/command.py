"""The command line of the player."""

import sys
from collections.abc import Sequence
from pathlib import Path

from .expectations import MismatchError
from .recording import load
from .stage import Stage, die_like_a_program, leave

EXIT_USAGE = 2
EXIT_MISMATCH = 3


def run(arguments: Sequence[str]) -> int:
    """Play. Returns the exit code only when the play could not end as recorded."""
    die_like_a_program()
    try:
        path, speed, patience = arguments
        recording = load(Path(path))
        Stage(recording, speed=float(speed), patience=float(patience)).play()
    except ValueError as error:
        sys.stderr.write(f"replay: {error}\n")
        return EXIT_USAGE
    except MismatchError as mismatch:
        sys.stderr.write(f"replay: {mismatch}\n")
        return EXIT_MISMATCH
    return leave(recording.code, recording.signal)
