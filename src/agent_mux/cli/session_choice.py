"""`--continue` and `--pick`: the session of a run is the latest one of the agent in its directory, or a chosen one."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_mux.cli.errors import usage_error
from agent_mux.cli.session_options import open_sessions
from agent_mux.cli.terminal import is_terminal, local_minute, one_line, shorten_home
from agent_mux.sessions.summary import SessionFilter, SessionSummary

if TYPE_CHECKING:
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.settings.resolver import ResolvedOptions

MAX_OFFERED = 20
"""The most sessions that are offered to choose from."""
TITLE_WIDTH = 80
"""Characters of a title in the list."""
NEW = "n"
"""The answer that starts a new session."""
_OTHER_FLAGS = ("session", "fork", "session_name", "no_session")


def with_chosen_session(resolved: "ResolvedOptions", flags: "RunFlags") -> "ResolvedOptions":
    """Return the options with the session that `--continue` or `--pick` selects.

    Raises VALIDATION_ERROR if there is no such session, nobody can choose, or the flags select another one.
    """
    own = "--continue" if flags.continue_last else "--pick"
    if flags.continue_last and flags.pick_session:
        raise usage_error("--continue cannot be combined with --pick")
    for name in _OTHER_FLAGS:
        if getattr(flags, name) not in (None, False):  # an empty value was given, too
            raise usage_error(f"{own} cannot be combined with --{name.replace('_', '-')}")
    options = resolved.options
    found = _sessions_in(os.path.realpath(options.working_directory()), options.agent, flags)
    if flags.pick_session:
        chosen = _pick(found)
    elif found:
        chosen = found[0]
    else:
        place = shorten_home(str(options.working_directory()))
        raise usage_error(f"no session of {options.agent} in {place}; omit --continue to start one")
    if chosen is None:
        return resolved
    return replace(resolved, options=replace(options, session_id=chosen.native_id))


def _sessions_in(directory: str, agent: str, flags: "RunFlags") -> list[SessionSummary]:
    """Return the sessions of an agent in exactly this directory, a real path, the latest first."""
    with open_sessions(flags.config_dir, flags.project_dir) as library:
        summaries = library.list(SessionFilter(agent=agent), limit=None)
    return [each for each in summaries if each.cwd is not None and os.path.realpath(each.cwd) == directory]


def _pick(found: Sequence[SessionSummary]) -> SessionSummary | None:
    """Ask which session to continue. Return None for a new one."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise usage_error("--pick asks at a terminal; use --continue or --session ID")
    offered = found[:MAX_OFFERED]
    for number, each in enumerate(offered, 1):
        turns = f"{each.turn_count:3} {'turn ' if each.turn_count == 1 else 'turns'}"
        title = one_line(each.title or each.native_id, TITLE_WIDTH)
        sys.stderr.write(f"{number:3}  {local_minute(each.updated_at)}  {turns}  {title}\n")
    if not offered:
        return None
    while True:
        sys.stderr.write(f"session [1-{len(offered)}, {NEW} = new; default 1]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        answer = line.strip()
        if not line:
            raise usage_error("no session was chosen; enter its number, or use --continue or --session ID")
        if answer == NEW:
            return None
        if not answer:
            return offered[0]
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(offered):
            return offered[int(answer) - 1]
