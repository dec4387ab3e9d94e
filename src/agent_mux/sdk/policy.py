"""Rules about what an agent may do: what nobody is asked about, and what happens when nobody answers.

    default = "ask"              # where no rule fits: allow, deny or ask
    timeout = 300                # seconds that a request waits for an answer; 0: for ever
    on_timeout = "deny"          # or allow

    [[rules]]
    decision = "allow"
    tools = ["Read", "mcp__docs__*"]

    [[rules]]
    decision = "deny"
    commands = ["git push", "npm publish"]
    reason = "nothing leaves this machine"

A rule fits when everything that it names does: tools, paths, commands and risk. Of the rules that fit, one that denies
wins over one that asks, and that over one that allows, wherever they stand. What a rule cannot see it never allows: a
command that holds more than it names, a path that leads out of the workspace.
"""

import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from pathspec import GitIgnoreSpec

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.facts import Risk
from agent_mux.sdk.shell_commands import begins_with, mentions, named_words, simple_commands

__all__ = ["Decision", "Policy", "Request", "Rule", "Ruling", "read_policy"]

Decision = Literal["allow", "deny", "ask"]
_STRICTEST_FIRST: tuple[Decision, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an agent asks permission for, as rules see it."""

    tool: str | None = None
    """The tool, as the agent names it."""
    command: str | None = None
    """The command line that would run, where one would."""
    paths: tuple[str, ...] = ()
    """Files and folders it is about: absolute, or relative to `cwd`."""
    risk: Risk | None = None
    """None: nobody judged it; then no rule about risk fits."""
    cwd: str = "/"
    """Where the agent works: absolute."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. What it does not name does not matter."""

    decision: Decision
    tools: tuple[str, ...] = ()
    """Names of tools, with `*`, `?` and `[...]`."""
    paths: tuple[str, ...] = ()
    """Globs as in `.gitignore`, below the working directory; with a `/` or `~` in front, of the whole machine. A rule
    that denies or asks fits commands, too, that name such a file."""
    commands: tuple[str, ...] = ()
    """First words of commands: `git log` fits `git log -3`, and not `git logs`. A rule that allows wants every command
    of a line to begin so; one that denies or asks fits wherever the words stand."""
    risk: tuple[Risk, ...] = ()
    reason: str | None = None
    """Told to the agent with a denial."""

    def fits(self, request: Request) -> bool:
        """The rule is about this request."""
        wants: tuple[tuple[tuple[str, ...], Callable[[Request], bool]], ...] = (
            (self.tools, self._fits_tool),
            (self.paths, self._fits_paths),
            (self.commands, self._fits_command),
            (self.risk, lambda asked: asked.risk in self.risk),
        )
        return all(fits(request) for named, fits in wants if named)

    def _fits_tool(self, request: Request) -> bool:
        return request.tool is not None and any(fnmatchcase(request.tool, pattern) for pattern in self.tools)

    def _fits_command(self, request: Request) -> bool:
        if request.command is None:
            return False
        prefixes = [tuple(command.split()) for command in self.commands]
        if self.decision != "allow":
            return any(mentions(request.command, prefix) for prefix in prefixes)
        commands = simple_commands(request.command) or []
        return bool(commands) and all(any(begins_with(one, prefix) for prefix in prefixes) for one in commands)

    def _fits_paths(self, request: Request) -> bool:
        """Of a command nobody knows what files it touches; a rule that does not allow fits those that it names."""
        cwd = Path(request.cwd)
        if self.decision == "allow":
            return bool(request.paths) and all(self._fits_path(cwd / path, cwd) for path in request.paths)
        named = [] if request.command is None else named_words(request.command)
        return any(self._fits_path(cwd / path, cwd) for path in (*request.paths, *named))

    def _fits_path(self, path: Path, cwd: Path) -> bool:
        """A link counts as what it leads to; for a rule that does not allow, as itself, too."""
        real = Path(os.path.realpath(path)), Path(os.path.realpath(cwd))
        named = Path(os.path.normpath(path)), cwd
        places = [real] if self.decision == "allow" else [real, named]
        return any(_matches(self.paths, *place) for place in places)


class Ruling(msgspec.Struct, frozen=True):
    """What a policy says about a request."""

    decision: Decision
    reason: str | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules, and what holds where they do not fit. Immutable: one may serve many runs."""

    rules: tuple[Rule, ...] = ()
    default: Decision = "ask"
    timeout: float = 300.0
    """Seconds that a request waits for an answer; 0: for ever. Questions wait as long, and are then declined."""
    on_timeout: Literal["allow", "deny"] = "deny"
    """What becomes of an approval that nobody answered. A question is declined."""

    def rule_on(self, request: Request) -> Ruling:
        """Decide. `ask`: it is for the approval mode of the run, and whoever answers."""
        return self.ruled(request) or Ruling(self.default)

    def ruled(self, request: Request) -> Ruling | None:
        """As `rule_on`; None where no rule fits."""
        fitting = [rule for rule in self.rules if rule.fits(request)]
        for decision in _STRICTEST_FIRST:
            for rule in fitting:
                if rule.decision == decision:
                    return Ruling(decision, rule.reason)
        return None


def read_policy(path: Path) -> Policy:
    """Read a policy from a TOML file. Raises CONFIG_ERROR that names the file and what is wrong in it."""
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
        policy = msgspec.convert(plain, Policy)
    except OSError as error:
        raise _wrong(path, error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise _wrong(path, str(error)) from error
    for number, rule in enumerate(policy.rules, start=1):
        if not (rule.tools or rule.paths or rule.commands or rule.risk):
            raise _wrong(path, f"rule {number} names nothing; `default` says what holds where no rule fits")
        if not all(command.split() for command in rule.commands):
            raise _wrong(path, f"rule {number} has a command without a word")
    if policy.timeout < 0:
        raise _wrong(path, f"timeout is {policy.timeout}; it is a number of seconds, 0 for ever")
    return policy


def _wrong(path: Path, why: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", f"the policy {path} cannot be used: {why}")


def _matches(patterns: Sequence[str], path: Path, cwd: Path) -> bool:
    anywhere = tuple(str(Path(one).expanduser()) for one in patterns if one.startswith(("/", "~")))
    below = tuple(one for one in patterns if not one.startswith(("/", "~")))
    if anywhere and _spec(anywhere).match_file(str(path).lstrip("/")):
        return True
    return bool(below) and path.is_relative_to(cwd) and _spec(below).match_file(str(path.relative_to(cwd)))


@cache
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(patterns)
