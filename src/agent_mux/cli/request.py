"""Convert words and flags to `RunOptions`, and choose how the run is shown and who answers its requests."""

import os
import stat
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from agent_mux.cli import inputs
from agent_mux.cli.errors import usage_error
from agent_mux.cli.inputs import check_agent_name, missing_agent_error, names_agent
from agent_mux.cli.interaction_handlers import DenyingHandler, InteractionHandler, TerminalHandler
from agent_mux.cli.output import OutputWriter, Screen
from agent_mux.cli.terminal import Palette, is_capable, is_terminal, palette_for, width_of
from agent_mux.cli.views import DeferredView, HumanView, JsonView, QuietView, ResultView, View

if TYPE_CHECKING:
    from agent_mux.cli.run_flags import RunFlags


OUTPUT_FORMATS = ("text", "json", "jsonl")


class StandardStreams(msgspec.Struct, frozen=True):
    """What the standard streams of this process are connected to."""

    asks: bool
    """Whether standard input and standard error are terminals, so that a person can be asked."""
    in_pipeline: bool
    """Whether standard input and standard output are both pipes; JSON lines are then the default."""


def inspect_streams() -> StandardStreams:
    """Inspect the standard streams of this process."""
    return StandardStreams(
        asks=is_terminal(sys.stdin) and is_terminal(sys.stderr),
        in_pipeline=_is_pipe(sys.stdin) and _is_pipe(sys.stdout),
    )


def wants_json(flags: "RunFlags", streams: StandardStreams) -> bool:
    """Return whether to print JSON lines: on request, or between two pipes if no other format is given."""
    if flags.json and flags.quiet:
        raise usage_error("--json cannot be combined with --quiet")
    if flags.output_format is not None:
        return _format_is_json(flags, flags.output_format)
    return flags.json if flags.json is not None else streams.in_pipeline and not flags.quiet


def _format_is_json(flags: "RunFlags", form: str) -> bool:
    if form not in OUTPUT_FORMATS:
        raise usage_error(f"--output-format expects one of {', '.join(OUTPUT_FORMATS)}; got {form!r}")
    is_json = form != "text"
    if (flags.json is not None and flags.json != is_json) or (flags.quiet and is_json):
        other = "--quiet" if flags.quiet else "--json" if flags.json else "--no-json"
        raise usage_error(f"--output-format {form} cannot be combined with {other}")
    if flags.interactive and form == "json":
        raise usage_error("--output-format json has one result, but a conversation has several; use jsonl")
    return is_json


def view_for(flags: "RunFlags", *, as_json: bool, asks: bool = False, root: Path | None = None) -> View:
    """Return the view that formats the run, whose directory is `root`."""
    if as_json:
        return ResultView() if flags.output_format == "json" else JsonView(compact=flags.compact)
    screen = screen_for(no_color=flags.no_color, verbose=flags.debug)._replace(asks=asks)
    if flags.quiet:
        return QuietView(screen)
    if has_live_terminal(screen):
        return live_view(screen, root)
    return HumanView(screen._replace(shared=False) if flags.interactive else screen)  # an editor keeps streams apart


def has_live_terminal(screen: Screen) -> bool:
    """Return whether both streams are one terminal with cursor movement."""
    return screen.shared and is_capable()


def live_view(screen: Screen, root: Path | None = None) -> View:
    """Return the live view, which is imported with its first use. Paths inside of `root` are shown relative to it."""

    def create(width: int | None) -> View:
        from agent_mux.cli.live.view import LiveView

        directory = os.path.abspath(root or Path.cwd())  # noqa: PTH100  # as agents report it: links are kept
        return LiveView(screen if width is None else screen._replace(width=width), root=directory)

    return DeferredView(create)


def handler_for(
    flags: "RunFlags", streams: StandardStreams, *, as_json: bool
) -> Callable[[OutputWriter, Palette], InteractionHandler]:
    """Return the factory of the handler that answers the run's requests."""
    if not flags.interactive:
        return TerminalHandler if streams.asks and not flags.non_interactive else DenyingHandler
    if flags.quiet:
        raise usage_error("--interactive cannot be combined with --quiet")
    if as_json:
        from agent_mux.cli.interactive.jsonl import JsonlHandler

        return partial(JsonlHandler, is_attended=not flags.non_interactive)
    if not (streams.asks and is_capable()):
        raise usage_error("--interactive requires a terminal with cursor movement; programs can use --json")
    from agent_mux.cli.interactive.repl import ReplHandler

    return partial(ReplHandler, is_attended=not flags.non_interactive)


def screen_for(*, no_color: bool, verbose: bool = False) -> Screen:
    """Describe the terminal behind standard output and standard error."""
    out, err = is_terminal(sys.stdout), is_terminal(sys.stderr)
    return Screen(
        palette_for(sys.stderr, no_color=no_color), width_of(sys.stderr), out, out and err, verbose, sys.stderr.encoding
    )


def options_from(words: list[str], flags: "RunFlags", default_agent: Callable[[], str] = str) -> dict[str, Any]:
    """Return the fields of `RunOptions` that the command line sets.

    Reads the prompt from standard input if neither a word nor a flag gives one. `default_agent` returns the agent of
    runs that name none, or an empty string.
    """
    _check_text([*words, *vars(flags).values()])
    agent, prompt = _split_words(words, flags, default_agent)
    mode = _approval_mode(flags)
    if flags.journal is not None and flags.no_journal:
        raise usage_error("--journal cannot be combined with --no-journal")
    schema = flags.output_schema
    given: dict[str, Any] = {
        "agent": agent,
        "prompt": prompt,
        "profile": "" if flags.no_profile else flags.profile,
        "command": None if flags.command is None else inputs.command(flags.command),
        "system_prompt": flags.system,
        "system_prompt_mode": flags.system_mode,
        "agents_doc": None if flags.agents_doc is None else flags.agents_doc.absolute(),
        "skills": [str(Path(path).absolute()) for path in flags.skill] if flags.skill else None,
        "attachments": inputs.attachments(flags.attach or ()) or None,
        "model": flags.model,
        "thinking_effort": flags.thinking_effort,
        "thinking_budget_tokens": flags.thinking_budget,
        "thinking_override": inputs.native_settings("--thinking-override", flags.thinking_override or ()) or None,
        "fallback_model": flags.fallback_model,
        "temperature": flags.temperature,
        "top_p": flags.top_p,
        "top_k": flags.top_k,
        "max_tokens": flags.max_tokens,
        "session_id": flags.session,
        "fork_session_id": flags.fork,
        "session_name": flags.session_name,
        "no_session": flags.no_session or None,
        "stream": flags.stream,
        "output_schema": None if schema is None else inputs.read_json_object(schema, "a JSON Schema"),
        "cwd": None if flags.cwd is None else Path(os.path.abspath(flags.cwd)),  # noqa: PTH100  # resolves `..` only
        "add_dirs": tuple(os.path.abspath(path) for path in flags.add_dir or ()) or None,  # noqa: PTH100  # as for cwd
        "isolation": flags.isolation,
        "carry_changes": False if flags.no_carry_changes else None,
        "setup_command": None if flags.setup is None else inputs.command(flags.setup),
        "track_changes": False if flags.no_track_changes else None,
        "fail_on": inputs.split_names(flags.fail_on or ()) or None,
        "env": inputs.environment(flags.env or ()) or None,
        "timeout": flags.timeout,
        "inactivity_timeout": flags.inactivity_timeout,
        "grace_period": flags.grace_period,
        "max_model_calls": flags.max_model_calls,
        "max_turns": flags.max_turns,
        "max_cost_usd": flags.max_cost,
        "max_tokens_total": flags.max_tokens_total,
        "max_text_bytes": flags.max_text_bytes,
        "retry_policy": inputs.retry_policy(flags.retry, flags.retry_delay),
        "wait_for_quota": inputs.longest_wait(flags.wait_for_quota),
        "fallback": list(flags.fallback) if flags.fallback else None,
        "interactive": flags.interactive,  # always set: only the command line decides whether a run is interactive
        "approval_mode": mode,
        "allowed_tools": tuple(flags.allowed_tools or ()) or None,
        "disallowed_tools": tuple(flags.disallowed_tools or ()) or None,
        "extra_args": tuple(flags.extra_arg or ()) or None,
        "native_options": inputs.native_settings("--native-option", flags.native_option or ()) or None,
        "policy": None if flags.policy is None else _read_policy(flags.policy),
        "hooks": flags.hooks,
        "approval_timeout": flags.approval_timeout,
        "mcp_servers": inputs.mcp_servers(flags.mcp_server or ()) or None,
        "run_id": flags.run_id,
        "tags": tuple(flags.tag or ()) or None,
        "project_id": flags.project_id,
        "include_subagent_events": flags.include_subagent_events or None,
        "debug": flags.debug or None,
        "journal": False if flags.no_journal else flags.journal,
    }
    return {name: value for name, value in given.items() if value is not None}


def _approval_mode(flags: "RunFlags") -> str | None:
    given = [name for name in ("yolo", "deny", "plan") if getattr(flags, name)]
    if len(given) > 1:
        raise usage_error(f"--{given[0]} cannot be combined with --{given[1]}")
    return given[0] if given else None


def _read_policy(path: Path) -> Any:
    from agent_mux.sdk.policy import read_policy

    return read_policy(path)


def _check_text(given: Iterable[Any]) -> None:
    """Raise VALIDATION_ERROR for values that are not valid UTF-8 and thus cannot be stored in JSON."""
    for value in given:
        if isinstance(value, list):
            _check_text(value)
        elif isinstance(value, str | Path) and not str(value).isascii():
            try:
                str(value).encode()
            except UnicodeEncodeError as error:
                raise usage_error(f"{str(value)!r} is not UTF-8; use a UTF-8 locale") from error


def _split_words(
    words: list[str], flags: "RunFlags", default_agent: Callable[[], str]
) -> tuple[str | None, str | list[str]]:
    """Split words into agent and prompt. The agent is None if the default agent applies.

    With a default agent, a first word that names no agent is the prompt.
    """
    agent, rest = _find_agent(words, flags, default_agent)
    if len(rest) > 1:
        raise usage_error(f"expected one prompt, got {len(rest)} words; quote it")
    if rest and flags.prompt:
        raise usage_error("give the prompt as an argument or with --prompt, not both")
    if flags.prompt:
        return agent, flags.prompt
    if flags.interactive:
        if rest == [inputs.STDIN]:
            raise usage_error("--interactive reads prompts from standard input; omit the -")
        return agent, rest[0] if rest else ""
    return agent, rest[0] if rest and rest != [inputs.STDIN] else inputs.pipe_prompt()


def _find_agent(words: list[str], flags: "RunFlags", default_agent: Callable[[], str]) -> tuple[str | None, list[str]]:
    if flags.agent is not None:
        return flags.agent, words
    is_name = bool(words) and len(words[0].split()) == 1
    if words and (names_agent(words[0]) or (is_name and len(words) == 2)):
        return words[0], words[1:]  # a service may know more agents; an unknown name is reported when it is resolved
    if default_agent():
        return None, words
    if is_name and len(words) == 1:
        check_agent_name(words[0])
    raise missing_agent_error(words)


def _is_pipe(stream: TextIO) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
