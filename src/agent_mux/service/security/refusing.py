"""A request that is not let in: the status, and one sentence."""

from collections.abc import Mapping

from starlette.exceptions import HTTPException


class Refused(HTTPException):
    """As any `HTTPException`, it becomes a problem: also when it is raised while a route reads its body."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, why, headers)
