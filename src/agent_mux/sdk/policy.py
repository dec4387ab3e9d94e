"""Approval policies: rules that allow, deny or ask, and what happens to unanswered requests.

    default = "ask"              # when no rule matches: allow, deny or ask
    timeout = "5m"               # how long to wait for an answer; a number is seconds, 0 = forever
    on_timeout = "deny"          # or allow

    [[rules]]
    decision = "allow"
    tools = ["Read", "mcp__docs__*"]

    [[rules]]
    decision = "deny"
    commands = ["git push", "npm publish"]
    reason = "nothing leaves this machine"

A rule matches when all of its conditions do: tools, paths, commands and risk. Among matching rules, `deny` takes
precedence over `ask`, and `ask` over `allow`, regardless of order. A rule never allows more than it names: neither a
command line with further commands nor a path that leads out of the workspace.
"""

import math
import os
import tomllib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.facts import Risk
from agent_mux.sdk.shell_commands import begins_with, find_path_words, mentions, simple_commands

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["Decision", "Policy", "PolicyDecision", "PolicyRequest", "Rule", "read_policy"]

Decision = Literal["allow", "deny", "ask"]
_STRICTEST_FIRST: tuple[Decision, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """The action that an agent requests, as rules match it."""

    tool: str | None = None
    """The agent's name of the tool."""
    command: str | None = None
    """The command line that would run, if any."""
    paths: tuple[str, ...] = ()
    """Files and folders concerned: absolute, or relative to `cwd`."""
    risk: Risk | None = None
    """None: the risk is unknown and no rule with a risk condition matches."""
    cwd: str = "/"
    """Absolute working directory of the agent."""


class Rule(Checked, PydanticCompatible, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule with conditions; an empty condition matches everything."""

    decision: Decision
    """What happens to a request that the rule matches; `ask` leaves it to callbacks and readers."""
    tools: tuple[str, ...] = ()
    """Patterns for tool names, with `*`, `?` and `[...]`."""
    paths: tuple[str, ...] = ()
    """Patterns as in `.gitignore`, relative to the working directory; absolute with a leading `/` or `~`.

    A rule that denies or asks also matches commands that name such a file.
    """
    commands: tuple[str, ...] = ()
    """First words of commands: `git log` matches `git log -3` but not `git logs`.

    A rule that allows requires this of every command of the line; one that denies or asks matches the words anywhere.
    """
    risk: tuple[Risk, ...] = ()
    """Risk levels, as the adapter classifies the request. A request whose risk is unknown is not matched."""
    reason: str | None = None
    """Sent to the agent with a denial."""

    def check(self) -> None:
        """Raise `ValidationError` for a pattern without a word: in a rule that denies, it would deny nothing."""
        named = {"tools": self.tools, "paths": self.paths, "commands": self.commands}
        empty = [
            FieldError(f"Rule.{name}[{index}]", pattern, "a text that is not empty")
            for name, patterns in named.items()
            for index, pattern in enumerate(patterns)
            if not pattern.strip()
        ]
        if empty:
            raise ValidationError(empty)

    def fits(self, request: PolicyRequest) -> bool:
        """Return whether all conditions match the request."""
        conditions: tuple[tuple[tuple[str, ...], Callable[[PolicyRequest], bool]], ...] = (
            (self.tools, self._matches_tool),
            (self.paths, self._matches_paths),
            (self.commands, self._matches_command),
            (self.risk, lambda requested: requested.risk in self.risk),
        )
        return all(condition(request) for patterns, condition in conditions if patterns)

    def _matches_tool(self, request: PolicyRequest) -> bool:
        return request.tool is not None and any(fnmatchcase(request.tool, pattern) for pattern in self.tools)

    def _matches_command(self, request: PolicyRequest) -> bool:
        if request.command is None:
            return False
        prefixes = [tuple(command.split()) for command in self.commands]
        if self.decision != "allow":
            return any(mentions(request.command, prefix) for prefix in prefixes)
        commands = simple_commands(request.command) or []
        return bool(commands) and all(any(begins_with(words, prefix) for prefix in prefixes) for words in commands)

    def _matches_paths(self, request: PolicyRequest) -> bool:
        """Return whether the paths match; a rule that denies or asks also matches paths named in the command."""
        cwd = Path(request.cwd)
        if self.decision == "allow":
            return bool(request.paths) and all(self._matches_path(cwd / path, cwd) for path in request.paths)
        named = [] if request.command is None else find_path_words(request.command)
        return any(self._matches_path(cwd / path, cwd) for path in (*request.paths, *named))

    def _matches_path(self, path: Path, cwd: Path) -> bool:
        """Resolve symbolic links; a rule that denies or asks also matches the link itself."""
        real = Path(os.path.realpath(path)), Path(os.path.realpath(cwd))
        named = Path(os.path.normpath(path)), cwd
        spellings = [real] if self.decision == "allow" else [real, named]
        return any(_matches(self.paths, *spelling) for spelling in spellings)


class PolicyDecision(Checked, PydanticCompatible, msgspec.Struct, frozen=True):
    """The decision of a policy on a request."""

    decision: Decision
    reason: str | None = None


class Policy(Checked, PydanticCompatible, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules and defaults. Immutable; many runs may share one."""

    durations: ClassVar[frozenset[str]] = frozenset({"timeout"})

    rules: tuple[Rule, ...] = ()
    """The rules. Of those that match, a denial overrides `ask`, which overrides an approval."""
    default: Decision = "ask"
    """Decision on a request that no rule matches."""
    timeout: float = 300.0
    """Seconds to wait for an answer to an approval or a question; 0 means forever."""
    on_timeout: Literal["allow", "deny"] = "deny"
    """Decision on an unanswered approval. An unanswered question is declined."""

    def check(self) -> None:
        """Raise `ValidationError` for a timeout that is no duration."""
        if not 0 <= self.timeout < math.inf:
            raise ValidationError([FieldError("Policy.timeout", self.timeout, "a number >= 0")])

    def rule_on(self, request: PolicyRequest) -> PolicyDecision:
        """Return the decision on a request; `ask` leaves it to the callbacks and the approval mode of the run."""
        return self.ruled(request) or PolicyDecision(self.default)

    def ruled(self, request: PolicyRequest) -> PolicyDecision | None:
        """Return the decision of the rules; None when no rule matches."""
        matching = [rule for rule in self.rules if rule.fits(request)]
        for decision in _STRICTEST_FIRST:
            for rule in matching:
                if rule.decision == decision:
                    return PolicyDecision(decision, rule.reason)
        return None


def read_policy(path: Path) -> Policy:
    """Read a policy from a TOML file. Raises CONFIG_ERROR with the file and the reason."""
    from agent_mux.sdk.checked_values import from_plain  # noqa: PLC0415  # it imports this module

    try:
        policy: Policy = from_plain(tomllib.loads(path.read_text("utf-8")), Policy, "policy")
    except OSError as error:
        raise _policy_error(path, error.strerror or str(error)) from error
    except ValidationError as error:
        raise _policy_error(path, "; ".join(map(str, error.fields))) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _policy_error(path, str(error)) from error
    for number, rule in enumerate(policy.rules, start=1):
        if not (rule.tools or rule.paths or rule.commands or rule.risk):
            raise _policy_error(
                path, f"rule {number} has no conditions; use `default` for requests that no rule matches"
            )
    return policy


def _policy_error(path: Path, reason: str) -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", f"the policy {path} cannot be used: {reason}")


def _matches(patterns: Sequence[str], path: Path, cwd: Path) -> bool:
    absolute = tuple(str(Path(os.path.expanduser(pattern))) for pattern in patterns if pattern.startswith(("/", "~")))
    relative = tuple(pattern for pattern in patterns if not pattern.startswith(("/", "~")))
    if absolute and _spec(absolute).match_file(str(path).lstrip("/")):
        return True
    return bool(relative) and path.is_relative_to(cwd) and _spec(relative).match_file(str(path.relative_to(cwd)))


@cache
def _spec(patterns: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # not needed by runs without rules about paths

    return GitIgnoreSpec.from_lines(patterns)
