"""`/v1/runs/{id}/files` and `/v1/runs/{id}/patch`: what a run changed in its working directory."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from agent_mux.api import JsonView
from agent_mux.errors import AnyCode
from agent_mux.service.files.changes import MAX_FILES, RunFile, changes_of, patch_of
from agent_mux.service.files.opening import LONGEST_PATH, read_file
from agent_mux.service.openapi.descriptions import ResponseSpec
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.parameters import QueryParameters
from agent_mux.service.routes.requests import current_service, json_answer, read_query, run_id_of
from agent_mux.service.security.http_rules import RequestRefused
from agent_mux.service.service import in_thread
from agent_mux.service.workspaces import reported_of, workspace_of
from agent_mux.worktrees.git import ChangeKind

operations = OperationGroup("/v1/runs", tag="files", matches_raw_path=True)
LARGEST_PART = 16 << 20  # bytes of a file in one response
FURTHEST = 1 << 53
MAX_PATHS = 500
BINARY, DIFF = "application/octet-stream", "text/x-diff"
_ERRORS: tuple[AnyCode, ...] = ("RUN_NOT_FOUND", "NOT_FOUND", "FORBIDDEN", "SPAWN_ERROR", "TIMEOUT")
ATTACHMENT = {"content-disposition": "attachment"}


class FileChangeView(JsonView, kw_only=True):
    """A file that was changed since the start of the run."""

    path: Annotated[str, Meta(description="Relative to the working directory of the run.")]
    change: ChangeKind
    added: Annotated[int | UnsetType, Meta(description="Lines added; absent where git did not count them.")] = UNSET
    removed: Annotated[int | UnsetType, Meta(description="Lines removed.")] = UNSET
    binary: Annotated[bool | UnsetType, Meta(description="`true` for a binary file.")] = UNSET


class RunFilesView(JsonView, kw_only=True):
    """The changed files of a run by path."""

    files: list[FileChangeView]
    from_git: Annotated[
        bool, Meta(description="Whether git compared the directory; otherwise the files are those that events report.")
    ]
    base: Annotated[
        str | UnsetType,
        Meta(description="The commit that was checked out when the run started, or the tree of its start."),
    ] = UNSET
    truncated: Annotated[
        bool | UnsetType, Meta(description=f"`true` if there are more than {MAX_FILES} files; the others are missing.")
    ] = UNSET


class ReadQuery(QueryParameters):
    """Which part of a file to read."""

    offset: Annotated[int, Meta(ge=0, le=FURTHEST, description="First byte.")] = 0
    limit: (
        Annotated[
            int,
            Meta(ge=0, le=LARGEST_PART, description="Maximum number of bytes; without it, a larger file is refused."),
        ]
        | None
    ) = None


class PatchQuery(QueryParameters):
    """Which files to compare."""

    path: (
        Annotated[
            list[Annotated[str, Meta(max_length=LONGEST_PATH)]],
            Meta(max_length=MAX_PATHS, description="Only these files, relative to the working directory."),
        ]
        | None
    ) = None


@operations.get("/{run_id}/files", ResponseSpec(RunFilesView), errors=_ERRORS)
async def list_files(request: Request) -> Response:
    """List the files that a run changed in its working directory, as they are now.

    In a git repository, the directory is compared with the commit that was checked out when the run started; files that
    were changed before that only are left out. Elsewhere, the files are those that the events of the run report.
    """
    run_id, service = run_id_of(request), current_service(request)
    workspace = await workspace_of(service, run_id)
    reported = await reported_of(service, run_id, workspace)
    changes = await in_thread(service, changes_of, workspace, reported)
    return json_answer(
        RunFilesView(
            files=[_view(one) for one in changes.files],
            from_git=changes.from_git,
            base=changes.base or UNSET,
            truncated=changes.is_truncated or UNSET,
        )
    )


@operations.get(
    "/{run_id}/files/{path:path}",
    ResponseSpec(
        description="The bytes, as an attachment.",
        other_media={BINARY: str},
        headers={"X-File-Size": "Number of bytes of the whole file."},
    ),
    query=ReadQuery,
    errors=_ERRORS,
)
async def read_run_file(request: Request) -> Response:
    """Read a file in the working directory of a run. Needs the scope `run`, since it may be any file there.

    Symbolic links are not followed, and only regular files are read. A file of more than 16 MiB needs a `limit`.
    """
    run_id, service, query = run_id_of(request), current_service(request), read_query(request, ReadQuery)
    workspace = await workspace_of(service, run_id)
    limit = LARGEST_PART if query.limit is None else query.limit
    path = request.path_params["path"]
    content, size = await in_thread(service, read_file, workspace.directory, path, query.offset, limit)
    if query.limit is None and size - query.offset > len(content):
        raise RequestRefused(413, f"the file has {size} bytes; read it in parts with `offset` and `limit`")
    return Response(content, headers={**ATTACHMENT, "x-file-size": str(size)}, media_type=BINARY)


@operations.get(
    "/{run_id}/patch",
    ResponseSpec(description="A unified diff, as an attachment.", other_media={DIFF: str}),
    query=PatchQuery,
    errors=_ERRORS,
)
async def read_patch(request: Request) -> Response:
    """Get the changes of a run as a unified diff against the commit that was checked out when it started.

    It has the files of `GET /v1/runs/{run_id}/files`, except those that git ignores; a binary file is one line. Without
    a git repository there is none: 404. A diff of more than 16 MiB is refused: select files with `path`.
    """
    run_id, service, query = run_id_of(request), current_service(request), read_query(request, PatchQuery)
    workspace = await workspace_of(service, run_id)
    reported = await reported_of(service, run_id, workspace)
    patch = await in_thread(service, patch_of, workspace, reported, query.path or ())
    return Response(patch, headers=ATTACHMENT, media_type=DIFF)


def _view(one: RunFile) -> FileChangeView:
    return FileChangeView(
        path=one.path,
        change=one.change,
        added=UNSET if one.added is None else one.added,
        removed=UNSET if one.removed is None else one.removed,
        binary=one.is_binary or UNSET,
    )
