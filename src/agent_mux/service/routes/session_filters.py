"""Which stored sessions are wanted: the parameters of sessions, of searching in them, and of their cost."""

from typing import Annotated

from fastapi import Depends, Query

from agent_mux.sdk.options import LONGEST_TAG
from agent_mux.sessions.summary import SessionFilter

LONGEST_NAME = 200  # characters
LONGEST_PATH = 4096
MOST_TAGS = 32
LATEST = 1 << 53  # milliseconds: larger numbers are none in JSON
Tag = Annotated[str, Query(max_length=LONGEST_TAG)]


def _wanted(  # noqa: PLR0913, PLR0917  # one for each parameter
    agent: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Name of an agent, or an alias.")] = None,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only those with this model.")] = None,
    since: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed at or after: milliseconds since the epoch.")
    ] = None,
    until: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Changed before: milliseconds since the epoch.")
    ] = None,
    tag: Annotated[
        list[Tag] | None, Query(max_length=MOST_TAGS, description="Only those of runs with all of these tags.")
    ] = None,
    cwd: Annotated[
        str | None, Query(max_length=LONGEST_PATH, description="Only those held in this directory, or below.")
    ] = None,
) -> SessionFilter:
    return SessionFilter(agent=agent, model=model, since=since, until=until, tags=tuple(tag or ()), cwd=cwd)


Wanted = Annotated[SessionFilter, Depends(_wanted)]
