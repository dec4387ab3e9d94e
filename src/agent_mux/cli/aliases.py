"""Command lines with old words, and those of the TypeScript agent-mux: translated to ours before they are parsed.

Only words are rewritten, so that help, completion and error messages show our own names. Commands without a counterpart
are refused with the next step. docs/reference/typescript-differences.md lists both.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from agent_mux.errors import AgentMuxError

_GLOBAL_VALUES = frozenset({
    "-a", "--agent", "-m", "--model", "--config-dir", "--project-dir", "--server", "--server-token-file",
})  # fmt: skip
"""Options before the command that are followed by a value."""
_RENAMED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("gateway", "serve"): ("serve",),
    ("gateway", "tokens"): ("tokens",),
    ("gateway", "token"): ("tokens",),
    ("token",): ("tokens",),
    ("plugin",): ("plugins",),
    ("plugins", "marketplace"): ("plugins", "browse"),
    ("plugins", "info"): ("plugins", "show"),
    ("skill",): ("skills",),
    ("agent",): ("subagents",),
    ("worktree",): ("worktrees",),
    ("worktrees", "clean"): ("worktrees", "delete"),
    ("compare", "remove"): ("compare", "delete"),
    ("profiles", "apply"): ("profiles", "use"),
    ("adapters", "info"): ("adapters", "show"),
    ("mcp", "install"): ("mcp", "add"),
    ("mcp", "uninstall"): ("mcp", "remove"),
    ("models", "info"): ("models", "show"),
    ("models", "get"): ("models", "show"),
    ("sessions", "cost"): ("cost", "report"),
    ("sessions", "tail"): ("sessions", "watch"),
    ("hooks", "discover"): ("hooks", "status"),
}
_REFUSED: Mapping[tuple[str, ...], str] = {
    ("gateway", "status"): "request GET /v1/health of the service, or use `amux adapters list --server URL`",
    ("remote",): "install amux on the other machine and run `amux serve` there; `--server URL` uses it from here",
    ("launch",): "choose the provider in the agent's own configuration, and start it with `amux run AGENT`",
    ("plugins", "enable"): "use the agent's own command, such as `claude plugin enable NAME`",
    ("plugins", "disable"): "use the agent's own command, such as `claude plugin disable NAME`",
    ("mcp", "enable"): "use `amux config set AGENT` for the field of the server's entry",
    ("mcp", "disable"): "use `amux config set AGENT` for the field of the server's entry, or `amux mcp remove`",
}
_SCOPED = frozenset({"mcp", "skills", "subagents", "hooks", "plugins"})
_CHANGED_OPTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "run": {"--max-output-tokens": ("--max-tokens",)},
    "cost": {"--group-by": ("--by",)},
    "sessions": {"--forget": ("--remove",)},
    **{group: {"--global": ("--scope", "global"), "--project": ("--scope", "project")} for group in _SCOPED},
    "mcp": {
        "--global": ("--scope", "global"), "--project": ("--scope", "project"), "-p": ("--scope", "project"),
        "--yes": (), "-y": (),
    },
    "plugins": {"--yes": (), "-y": ()},
}  # fmt: skip
_OF_ONE_SESSION = frozenset({"show", "export", "watch", "resume", "fork"})
_OF_HOOKS = frozenset({
    "list", "add", "remove", "set", "enable", "disable", "discover", "install", "uninstall", "status", "trust",
    "handle",
})  # fmt: skip
MINUTE = 60_000  # milliseconds


def translate(arguments: Sequence[str], names_agent: Callable[[str], bool]) -> list[str]:
    """Return the command line in our own words; unchanged if it already is.

    `names_agent` returns whether a word is exactly the name of an agent. Raises VALIDATION_ERROR for commands without a
    counterpart, with the next step.
    """
    start = _first_word(arguments)
    before, words = list(arguments[:start]), list(arguments[start:])
    if words[:1] == ["gateway"] and (len(words) == 1 or words[1].startswith("-")):
        words = ["serve", *words[1:]]
    if words[:1] == ["help"]:
        return [*before, "help", *_renamed(words[1:])]
    if words[:1] == ["hooks"]:
        words = _hooks(words)
    for length in (1, 2):
        known = tuple(words[:length])
        if known in _REFUSED:
            raise AgentMuxError("VALIDATION_ERROR", f"amux has no command {' '.join(known)!r}; {_REFUSED[known]}")
        if known in _RENAMED:
            words = [*_RENAMED[known], *words[length:]]
    if words[:2] == ["tokens", "create"]:
        words = [*words[:2], *_token_options(words[2:])]
    if words[:1] == ["sessions"]:
        words = _sessions(words, names_agent)
    return [*before, *_with_options(words)]


def _renamed(words: list[str]) -> list[str]:
    for length in (1, 2):
        known = tuple(words[:length])
        words = [*_RENAMED.get(known, known), *words[length:]]
    return words


def _first_word(arguments: Sequence[str]) -> int:
    """Return the index of the command, after the options before it."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in _GLOBAL_VALUES else 1
    return min(index, len(arguments))


def _with_options(words: list[str]) -> list[str]:
    """Replace the options of a command that have another name, up to `--`."""
    changed = _CHANGED_OPTIONS.get(words[0] if words else "")
    if changed is None:
        return words
    end = words.index("--") if "--" in words else len(words)
    replaced: list[str] = []
    for word in words[:end]:
        name, equals, value = word.partition("=")
        new = changed.get(name)
        replaced += [word] if new is None else [f"{new[0]}={value}"] if equals and new else new
    return [*replaced, *words[end:]]


def _token_options(words: list[str]) -> list[str]:
    """Convert `--name NAME` to the name with the scope `run`, and `--ttl-ms N` to a duration in whole minutes."""
    name, words = _take(words, "--name")
    lifetime, words = _take(words, "--ttl-ms")
    expires = []
    if lifetime is not None:
        if not lifetime.isdecimal() or int(lifetime) < 1:
            raise AgentMuxError(
                "VALIDATION_ERROR", f"--ttl-ms expects milliseconds, got {lifetime!r}; or use --expires"
            )
        expires = ["--expires", f"{math.ceil(int(lifetime) / MINUTE)}m"]
    has_scope = any(word.partition("=")[0] == "--scope" for word in words)
    scope = [] if has_scope or name is None else ["--scope", "run"]
    return [*([] if name is None else [name]), *words, *scope, *expires]


def _take(words: list[str], option: str) -> tuple[str | None, list[str]]:
    """Return the value of an option and the other words."""
    for index, word in enumerate(words):
        if word == option and index + 1 < len(words):
            return words[index + 1], [*words[:index], *words[index + 2 :]]
        if word.startswith(f"{option}="):
            return word.partition("=")[2], [*words[:index], *words[index + 1 :]]
    return None, words


def _sessions(words: list[str], names_agent: Callable[[str], bool]) -> list[str]:
    """Convert `sessions list AGENT` and `sessions show AGENT ID`."""
    verb, first, second = (*words[1:4], "", "", "")[:3]
    if verb not in {"list", *_OF_ONE_SESSION} or not first or first.startswith("-") or not names_agent(first):
        return words
    if verb in {"list", "watch"} and (not second or second.startswith("-")):
        return [*words[:2], "--agent", first, *words[3:]]
    if verb in _OF_ONE_SESSION and second and not second.startswith("-"):
        verb = "export" if verb == "show" and any(word.startswith("--format") for word in words[4:]) else verb
        return ["sessions", verb, f"{first}:{second}", *words[4:]]
    return words


def _hooks(words: list[str]) -> list[str]:
    """Convert `hooks AGENT VERB ...`, `hooks add TYPE --id ID ...` and `hooks set ID --enabled true`."""
    agent = None
    if len(words) > 2 and words[1] not in _OF_HOOKS and words[2] in _OF_HOOKS - {"handle"}:
        agent, words = words[1], ["hooks", *words[2:]]
    verb, rest = (words[1] if len(words) > 1 else ""), words[2:]
    if verb == "add" and any(word.partition("=")[0] == "--handler" for word in rest):
        return ["hooks", "add", *_added_hook(rest, agent)]
    if verb == "set":
        enabled, rest = _take(rest, "--enabled") if _has_truth(rest) else (None, rest)
        state = {"true": ["--enabled"], "false": ["--disabled"]}.get(enabled or "", [])
        return ["hooks", "set", *rest, *state]
    if agent is None:
        return words
    if verb in {"list", "add"}:
        return ["hooks", verb, *rest, "--agent", agent]
    return ["hooks", verb, *([agent] if verb in {"discover", "install", "uninstall", "status"} else []), *rest]


def _has_truth(words: Sequence[str]) -> bool:
    values = {following for word, following in pairwise(words) if word == "--enabled"}
    values |= {word.partition("=")[2] for word in words if word.startswith("--enabled=")}
    return bool(values & {"true", "false"})


def _added_hook(words: list[str], agent: str | None) -> list[str]:
    """Return the arguments of our `hooks add` for options of the other command line."""
    handler, words = _take(words, "--handler")
    target, words = _take(words, "--target")
    name, words = _take(words, "--id")
    kind, words = _take(words, "--hook-type")
    named, words = _take(words, "--agent")
    if kind is None and words and not words[0].startswith("-"):
        kind, words = words[0], words[1:]
    for option, value in (("--target", target), ("--handler", handler)):
        if value is None:
            message = f"hooks add: {option} is missing; or use `amux hooks add ID KIND TARGET`"
            raise AgentMuxError("VALIDATION_ERROR", message)
    kind = "*" if kind is None else snake_case(kind)
    owner = agent or named or "*"
    name = name or f"{'all' if owner == '*' else owner}-{'all' if kind == '*' else kind}"
    return [name, handler or "", target or "", "--agent", owner, "--type", kind, *words]


def snake_case(name: str) -> str:
    """Return a hook type in our spelling: `PreToolUse` is `pre_tool_use`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
