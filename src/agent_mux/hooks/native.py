"""The contract: how an agent is told to call hooks, what it says to them, and how it wants to be answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.config.files import ConfigFile
from agent_mux.documents import FieldPath
from agent_mux.hooks.call import HookCall, HookDecision, HookType


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What a hook's process leaves behind."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


def _nobody(environ: Mapping[str, str]) -> str | None:  # noqa: ARG001
    return None


def _never(data: Mapping[str, Any]) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeHooks:
    """The hooks of an agent that has some."""

    files: tuple[ConfigFile, ...]
    """Their `table` holds the hooks."""
    types: Mapping[HookType, tuple[str, ...]]
    """What the agent calls those that it has: several names where it tells things apart that we do not."""
    decides: frozenset[HookType]
    """In which of them an answer counts: a tool call can be refused, say."""
    place: Callable[[str], FieldPath]
    """Where the hooks of a type (the agent's name of it) are, below the table."""
    add: Callable[[Any, str, str], Any]
    """What stands there (None: nothing), the agent's name of the type, and a command line: what shall stand there."""
    remove: Callable[[Any, Callable[[str], bool]], Any]
    """What stands there without the hooks whose command line answers to the question; None: nothing is left."""
    commands: Callable[[Any], tuple[str, ...]]
    """The command lines of what stands there."""
    read: Callable[[HookType, Mapping[str, Any]], HookCall]
    """What the agent writes to the hook's standard input. Never raises on what an agent may say."""
    answer: Callable[[HookCall, HookDecision], HookAnswer]
    """A decision, as the agent wants to hear it."""
    preamble: Mapping[FieldPath, Any] | None = None
    """What a file has to say besides, outside of the table: a version, say. Set where it is missing."""
    runs: frozenset[str] = frozenset()
    """Native protocols in which our runs can count on these hooks; in others they are called from the events."""
    consent: str | None = None
    """What a person has to do before the agent calls hooks that are new to it; None: nothing."""
    off: Callable[[Mapping[str, Any]], bool] = _never
    """A file that says this keeps the agent from calling any hook, or ours."""
    caller: Callable[[Mapping[str, str]], str | None] = _nobody
    """By the environment of a hook: the other agent that calls it, as it reads these files, too."""
