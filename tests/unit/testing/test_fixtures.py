"""Writing and reading of recordings, and the validity of all recordings in the repository."""

import datetime as dt
import re
from pathlib import Path

import pytest

from agent_mux.sdk.codec import Exit
from agent_mux_testing.fixtures import Fixture, find_fixtures, load_fixture, save_fixture

FIXTURES = Path(__file__).parents[3] / "fixtures"
MACHINE_PATH = re.compile(rb"/(?:root|opt|work|mnt|Users|private|home/(?!dev\b))/[\w./-]*")


def test_a_recording_survives_writing_and_reading(tmp_path: Path) -> None:
    fixture = Fixture(
        agent="someone",
        version="1.2.3",
        scenario="odd_bytes",
        protocol="stream-json",
        command=("someone", "-p", 'say "hi"\n\x7f\u2028 \\ 😀', ""),
        environment={"SOME_KEY": "sk-dummy"},
        recorded=dt.date(2026, 11, 21),
        note="what it's about",
        stdout=b'{"a":"\xe2\x80\xa8"}\r\n\xff\xfe\nlast line without end',
        times=(0.1, 0.2, 0.25),
        stdin=(b'{"prompt":1}', b""),
        stdin_times=(0.0, 0.3),
        stderr=b"oh\n",
        exit=Exit(signal=9),
        wall_s=0.5,
        script={"steps": [{"blocks": []}]},
        settings={"profile": {"name": "mine", "ready": "^é"}},
    )
    folder = save_fixture(fixture, tmp_path)
    assert folder == tmp_path / fixture.name
    assert load_fixture(folder) == fixture
    assert len(fixture.stdout_lines) == len(fixture.times)


def test_an_older_recording_leaves_nothing_behind(tmp_path: Path) -> None:
    loud = Fixture(
        agent="someone",
        version="1",
        scenario="s",
        protocol="text",
        command=("someone",),
        recorded=dt.date(2026, 11, 21),
        stdout=b"",
        stdin=(b"x",),
        stderr=b"x",
        exit=Exit(code=0),
        wall_s=0.1,
        settings={"x": 1},
    )
    save_fixture(loud, tmp_path)
    folder = save_fixture(Fixture(**{**_fields(loud), "stdin": (), "stderr": b"", "settings": {}}), tmp_path)
    assert load_fixture(folder).stdin == ()
    assert not (folder / "stderr.txt").exists()
    assert not (folder / "settings.json").exists()


def _fields(fixture: Fixture) -> dict[str, object]:
    return {name: getattr(fixture, name) for name in Fixture.__slots__}


@pytest.mark.parametrize("agent", sorted(folder.name for folder in FIXTURES.iterdir()))
def test_every_recording_can_be_read_and_names_no_machine(agent: str) -> None:
    for folder in find_fixtures(FIXTURES, agent):
        fixture = load_fixture(folder)
        assert folder == FIXTURES / fixture.name
        assert len(fixture.times) == len(fixture.stdout_lines), folder
        assert len(fixture.stdin_times) in {0, len(fixture.stdin)}, folder
        assert (fixture.exit.code is None) != (fixture.exit.signal is None), folder
        written = "\n".join((*fixture.command, *fixture.environment.values(), fixture.cwd)).encode()
        assert MACHINE_PATH.findall(fixture.stdout + fixture.stderr + written) == [], folder
