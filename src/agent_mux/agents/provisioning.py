"""Installing, updating and uninstalling agents: planning the commands and their requirements, and running a plan."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter, InstallMethod

TIMEOUT = 1800.0  # seconds; hundreds of megabytes over a slow line
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_VERSIONED = {"npm": "{0}@{1}", "pip": "{0}=={1}", "winget": "{0} --version {1}"}
"""The command of a method with a version, by the kind of the method."""
PACKAGE_MANAGERS: Mapping[str, frozenset[str]] = {
    "npm": frozenset({"node_modules"}),
    "brew": frozenset({"Cellar", "Caskroom"}),
    "winget": frozenset({"WinGet"}),
    "scoop": frozenset({"scoop"}),
    "gh-extension": frozenset({"extensions"}),
    "pip": frozenset({"site-packages"}),
}
"""The package managers that uninstall agents, and the directories by which their programs are recognized."""
_OWN_PACKAGE = "agent-mux"
_LONGEST_FIRST_LINE = 500  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """The commands that install, update or uninstall an agent on this machine."""

    agent: str
    """Registered name of the agent."""
    kind: str
    """The kind of the method, or `own`: the agent updates itself."""
    command: str
    """The command line as a person would type it."""
    steps: tuple[tuple[str, ...], ...]
    """Programs and their arguments, run without a shell; each reads the output of the previous one on stdin."""
    missing: tuple[str, ...] = ()
    """Required programs that are not on PATH."""
    removes: bool = False
    """Whether the plan uninstalls the agent."""


def split_version(name: str) -> tuple[str, str | None]:
    """Split `AGENT@VERSION`. The version is None if there is none. Raises `ValidationError` for an invalid version."""
    agent, at, version = name.partition("@")
    return (agent, check_version(version)) if at else (name, None)


def check_version(version: str) -> str:
    """Return a version or tag that is safe in a command line. Raises `ValidationError` for any other text."""
    if not _VERSION.fullmatch(version):
        raise ValidationError([FieldError("version", version, "a version or tag, such as 1.2.3 or latest")])
    return version


def plan_install(
    adapter: Adapter,
    environ: Mapping[str, str],
    *,
    kind: str | None = None,
    version: str | None = None,
    platform: str = sys.platform,
) -> InstallPlan:
    """Plan the installation of an agent, with the first method whose requirements are met, or with the named one.

    `version` selects among the methods that can install a given version, or a tag such as `latest`.

    Raises:
        CapabilityError: There is no method for this platform, or only a manual one (the error describes it), or none
            that installs a given version.
        ValidationError: The agent has no method of this kind, or the version is invalid.
    """
    methods = [method for method in adapter.install if platform in method.platforms]
    if kind is not None:
        wanted = [method for method in methods if method.kind == kind]
        if not wanted:
            kinds = ", ".join(method.kind for method in methods) or "none"
            raise ValidationError([FieldError("method", kind, f"one that {adapter.agent} has on {platform}: {kinds}")])
        methods = wanted
    automatic = [method for method in methods if method.kind != "manual"]
    if not automatic:
        hint = f"by hand: {methods[0].command}" if methods else f"no installation method is known on {platform}"
        raise CapabilityError(adapter.agent, "being installed by amux", hint=hint)
    if version is not None:
        automatic = _methods_with_version(adapter, automatic, check_version(version))
    ready = [method for method in automatic if not _missing_programs(method, environ)]
    return _plan(adapter.agent, (ready or automatic)[0], environ)


def plan_update(adapter: Adapter, environ: Mapping[str, str], *, platform: str = sys.platform) -> InstallPlan:
    """Plan the update of an installed agent, in this order: with npm if npm installed it, by itself, by reinstalling.

    Raises AGENT_NOT_INSTALLED; otherwise like `plan_install`.
    """
    program = find_executable(adapter, environ)
    is_npm = "node_modules" in Path(program).resolve().parts
    npm = next((method for method in adapter.install if method.kind == "npm"), None)
    words = adapter.installation().update
    if is_npm and npm is not None:
        return _plan(adapter.agent, npm, environ, suffix="@latest")
    if words is not None:
        argv = (program, *words)
        return InstallPlan(agent=adapter.agent, kind="own", command=shlex.join(argv), steps=(argv,))
    plan = plan_install(adapter, environ, platform=platform)
    upgrades = {"brew": ("install", "upgrade"), "pip": ("install", "install --upgrade"), "npm": ("", "")}
    old, new = upgrades.get(plan.kind, ("", ""))
    command = plan.command.replace(old, new, 1) if old else plan.command
    return InstallPlan(
        agent=plan.agent, kind=plan.kind, command=command, steps=split_pipeline(command), missing=plan.missing
    )


def _methods_with_version(adapter: Adapter, methods: list[InstallMethod], version: str) -> list[InstallMethod]:
    """Return the methods that can install a version, with commands that do. Raises `CapabilityError` without any."""
    able = [method for method in methods if method.kind in _VERSIONED]
    if not able:
        kinds = ", ".join(method.kind for method in methods)
        hint = f"{kinds} installs the current version only; omit the version"
        raise CapabilityError(adapter.agent, f"installing version {version}", hint=hint)
    return [replace(method, command=_VERSIONED[method.kind].format(method.command, version)) for method in able]


def plan_uninstall(
    adapter: Adapter, environ: Mapping[str, str], *, kind: str | None = None, platform: str = sys.platform
) -> InstallPlan:
    """Plan the removal of an installed agent with the package manager that installed it, or with the named one.

    The agent's settings, credentials and sessions are kept.

    Raises:
        AgentMuxError: AGENT_NOT_INSTALLED.
        CapabilityError: No package manager is known to have installed it; the error names the program to remove.
        ValidationError: The agent has no method of this kind.
    """
    program = find_executable(adapter, environ)
    methods = {method.kind: method for method in adapter.install if platform in method.platforms}
    installer = next((name for name in PACKAGE_MANAGERS if name in methods and _installed_by(name, program)), None)
    if kind is not None and kind not in methods:
        kinds = ", ".join(methods) or "none"
        raise ValidationError([FieldError("method", kind, f"one that {adapter.agent} has on {platform}: {kinds}")])
    if any(_package_of(method) == _OWN_PACKAGE for method in adapter.install):
        hint = f"it is a part of agent-mux; remove both with `pip uninstall {_OWN_PACKAGE}`"
        raise CapabilityError(adapter.agent, "being uninstalled alone", hint=hint)
    own = adapter.installation().uninstall
    chosen = kind or installer
    if chosen is None and own is not None:
        argv = (program, *own)
        return InstallPlan(agent=adapter.agent, kind="own", command=shlex.join(argv), steps=(argv,), removes=True)
    words = _removal(methods[chosen], program) if chosen in methods else None
    if chosen is None or words is None:
        hint = f"remove {program}, or name the package manager that installed it with --method"
        raise CapabilityError(adapter.agent, "being uninstalled by amux", hint=hint)
    missing = tuple(name for name in words[:1] if shutil.which(name, path=environ.get("PATH")) is None)
    return InstallPlan(
        agent=adapter.agent, kind=chosen, command=shlex.join(words), steps=(words,), missing=missing, removes=True
    )


def _installed_by(kind: str, program: str) -> bool:
    """Return whether the path of a program, or what it links to, is in a directory of this package manager."""
    parts = {*Path(program).parts, *Path(program).resolve().parts}
    return not PACKAGE_MANAGERS[kind].isdisjoint(parts) or (kind == "pip" and _interpreter(program) is not None)


def _interpreter(program: str) -> str | None:
    """Return the Python interpreter that a script installed by pip names in its first line; None for other programs."""
    try:
        with Path(program).open("rb") as file:
            first = file.readline(_LONGEST_FIRST_LINE).decode("utf-8", "replace").strip()
    except OSError:
        return None
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    return words[0] if words and Path(words[0]).name.startswith("python") else None


def _removal(method: InstallMethod, program: str) -> tuple[str, ...] | None:
    """Return the command that undoes a method of installation; None if its package manager has none."""
    words = split_pipeline(method.command)[-1]
    package = re.split(r"[\[=<>@]", words[-1].lstrip("@"), maxsplit=1)[0]
    package = f"@{package}" if words[-1].startswith("@") else package
    match method.kind:
        case "npm":
            return ("npm", "uninstall", "--global", *_npm_prefix(program), package)
        case "pip":
            return _pip_removal(program, package)
        case "brew":
            return ("brew", "uninstall", *(word for word in words if word == "--cask"), package)
        case "winget" | "scoop":
            return (method.kind, "uninstall", package)
        case "gh-extension":
            return ("gh", "extension", "remove", package.rpartition("/")[2].removeprefix("gh-"))
        case _:
            return None


def _package_of(method: InstallMethod) -> str:
    """Return the package that a method installs, without extras and version: the last word of its command."""
    word = split_pipeline(method.command)[-1][-1]
    scope = "@" if word.startswith("@") else ""
    return scope + re.split(r"[\[=<>@]", word.removeprefix("@"), maxsplit=1)[0]


def _npm_prefix(program: str) -> tuple[str, ...]:
    """Return the option that selects the global directory in which npm installed a program, where it is known."""
    parts = Path(program).resolve().parts
    for index in range(len(parts) - 1):
        if parts[index : index + 2] == ("lib", "node_modules"):
            return (f"--prefix={Path(*parts[:index])}",)
    return ()


def _pip_removal(program: str, package: str) -> tuple[str, ...]:
    python = _interpreter(program)
    if python is None:
        return ("pip", "uninstall", "--yes", package)
    tools = {("uv", "tools"): ("uv", "tool", "uninstall"), ("pipx", "venvs"): ("pipx", "uninstall")}
    parts = Path(python).parts
    for directories, words in tools.items():
        if any(parts[index : index + 2] == directories for index in range(len(parts))):
            return (*words, package)
    return (python, "-m", "pip", "uninstall", "--yes", package)


def split_pipeline(command: str) -> tuple[tuple[str, ...], ...]:
    """Split a command line into the programs of a pipeline. Only quotes and ` | ` have a meaning."""
    return tuple(tuple(shlex.split(part)) for part in command.split(" | "))


def check_ready(plan: InstallPlan) -> None:
    """Raise AGENT_NOT_INSTALLED if programs that a plan requires are missing."""
    if plan.missing:
        needs = f"`{plan.command}` needs {', '.join(plan.missing)}, which is not on PATH"
        verb = "uninstalled" if plan.removes else "installed"
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} cannot be {verb} yet: {needs}; install that first")


def run_install_plan(plan: InstallPlan, environ: Mapping[str, str] | None = None) -> None:
    """Install, update or uninstall an agent. Blocking; the last program prints to our standard error.

    Raises AGENT_NOT_INSTALLED if a program is missing or fails; SPAWN_ERROR, TIMEOUT.
    """
    check_ready(plan)
    given = b""
    for index, step in enumerate(plan.steps):
        is_last = index == len(plan.steps) - 1
        answer = run_program(
            step, environ=os.environ if environ is None else environ, timeout=TIMEOUT, stdin=given, show_output=is_last
        )
        if answer.exit_code != 0:
            failed = f"`{' '.join(step)}` failed (exit code {answer.exit_code})"
            why = f": {answer.error_line}" if not is_last else "; see its output above"
            done = "uninstalled" if plan.removes else "installed"
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} was not {done}: {failed}{why}")
        given = answer.stdout.encode()


def _plan(agent: str, method: InstallMethod, environ: Mapping[str, str], *, suffix: str = "") -> InstallPlan:
    command = method.command + suffix
    missing = _missing_programs(method, environ)
    return InstallPlan(agent=agent, kind=method.kind, command=command, steps=split_pipeline(command), missing=missing)


def _missing_programs(method: InstallMethod, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the programs that a method requires or runs and that are not on PATH."""
    needed = dict.fromkeys((*method.requires, *(step[0] for step in split_pipeline(method.command))))
    return tuple(name for name in needed if shutil.which(name, path=environ.get("PATH")) is None)
