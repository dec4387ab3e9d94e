"""Entry points are those that `importlib.metadata` finds, without importing it."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from zipfile import ZipFile

import pytest

from agent_mux.sdk.entry_points import load_entry_point, read_entry_points

GROUP = "agent_mux.test"


def add_distribution(path: Path, name: str, text: str) -> None:
    """Install a distribution that consists of entry points only."""
    (path / name).mkdir(parents=True)
    (path / name / "entry_points.txt").write_text(text, "utf-8")


def by_metadata(group: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=group)}


@pytest.mark.parametrize("group", ["agent_mux.adapters", "console_scripts", "pytest11", "no.such.group"])
def test_installed_entry_points_are_those_of_importlib_metadata(group: str) -> None:
    assert read_entry_points(group) == by_metadata(group)


def test_first_distribution_of_a_name_hides_later_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_distribution(
        tmp_path / "a", "some_name-1.dist-info", f"# why\n[other]\nx = y:z\n\n[{GROUP}]\n one = m : a.b \n"
    )
    add_distribution(tmp_path / "b", "Some.Name-2.dist-info", f"[{GROUP}]\none = m:old\ntwo = m:gone\n")
    add_distribution(tmp_path / "b", "else.egg-info", f"[{GROUP}]\nthree=m [extra]\n[{GROUP}.more]\nfour = m\n")
    monkeypatch.syspath_prepend(tmp_path / "b")
    monkeypatch.syspath_prepend(tmp_path / "a")
    assert read_entry_points(GROUP) == {"one": "m : a.b", "three": "m [extra]"} == by_metadata(GROUP)


def test_archives_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("zipped-1.dist-info/METADATA", "Name: zipped\n")
        archive.writestr("zipped-1.dist-info/entry_points.txt", f"[{GROUP}]\nzipped = m:a\n")
    monkeypatch.syspath_prepend(tmp_path / "packages.zip")
    assert read_entry_points(GROUP) == {"zipped": "m:a"}


def test_entry_point_names_an_attribute_or_a_module() -> None:
    assert load_entry_point("agent_mux.sdk.entry_points : load_entry_point.__name__ [extra]") == "load_entry_point"
    assert load_entry_point("agent_mux.sdk.entry_points").load_entry_point is load_entry_point
    with pytest.raises(ModuleNotFoundError):
        load_entry_point("agent_mux_no_such_module:X")


def test_adapter_is_loaded_without_importlib_metadata() -> None:
    program = (
        "import sys\nfrom agent_mux.sdk.registry import AdapterRegistry\nAdapterRegistry().get('replay')\n"
        "print(sorted({'importlib.metadata', 'email', 'ulid'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"
