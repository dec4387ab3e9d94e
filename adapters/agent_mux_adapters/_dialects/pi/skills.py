"""Where the agents of this dialect look for skills: in folders of their own, and in those that many agents share."""

from collections.abc import Callable
from pathlib import Path

from agent_mux.config.files import Scope
from agent_mux.definitions.folders import DefinitionFolders, Folder
from agent_mux.place import Place


def skills_in(
    own: Callable[[Place], Path], project: str, shared: tuple[tuple[Scope, str], ...], depth: int = 1
) -> DefinitionFolders:
    """The skills of an agent: its own directory, that of a project, and the shared ones, in the home or a project.

    Without a description a skill is not loaded; its name is that of the folder where it says none.
    """
    folders = (
        Folder(scope="global", path=lambda place: own(place) / "skills"),
        Folder(scope="project", path=lambda place: place.project_file(project, "skills")),
        *(_shared(scope, name) for scope, name in shared),
    )
    return DefinitionFolders(folders=folders, layout="folder", file="SKILL.md", required=("description",), depth=depth)


def _shared(scope: Scope, name: str) -> Folder:
    if scope == "global":
        return Folder(scope=scope, path=lambda place: place.home / name / "skills", is_shared=True)
    return Folder(scope=scope, path=lambda place: place.project_file(name, "skills"), is_shared=True)
