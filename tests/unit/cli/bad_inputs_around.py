"""What is wrong with what the user gave, for the commands about what is around a run."""

from pathlib import Path

Case = tuple[list[object], int, str]


def lonely(directory: Path) -> Path:
    """A folder with a skill's main file that has no header."""
    folder = directory / "lonely"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text("just text\n", "utf-8")
    return folder


def escaping(directory: Path) -> Path:
    """A skill whose name leads out of its folder."""
    folder = directory / "escaping"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text("---\nname: ../../x\ndescription: d\n---\n", "utf-8")
    return folder


def missing(directory: Path) -> Path:
    return directory / "missing"


CASES: list[Case] = [
    (["config", "get"], 2, "Missing argument 'AGENT'"),
    (["config", "get", "nobody"], 3, "no agent is named 'nobody'"),
    (["config", "get", "claude", "a..b"], 2, "a dotted name"),
    (["config", "get", "claude", "model"], 7, "no file of claude says model"),
    (["config", "get", "replay"], 6, "replay does not support configuration"),
    (["config", "get", "claude", "--cwd", missing], 2, "is no directory"),
    (["config", "set", "claude", "model"], 2, "Missing argument 'VALUE'"),
    (["config", "set", "claude", "permissions.defaultMode", "wild"], 2, "one of default, acceptEdits"),
    (["config", "set", "claude", "model", "x", "--scope", "galaxy"], 2, "Invalid value for '--scope'"),
    (["config", "set", "clade", "model", "x"], 3, "did you mean 'claude'"),
    (["config", "set", "claude", "env", "[]"], 2, "env: got .*; allowed: a table"),
    (["config", "unset", "claude"], 2, "Missing argument 'FIELD'"),
    (["config", "unset", "claude", "="], 2, "a dotted name"),
    (["config", "unset", "replay", "x"], 6, "replay does not support configuration"),
    (["config", "schema"], 2, "Missing argument 'AGENT'"),
    (["config", "schema", "nobody"], 3, "no agent is named"),
    (["config", "schema", "replay"], 6, "replay does not support"),
    (["config", "validate"], 2, "Missing argument 'AGENT'"),
    (["config", "validate", "nobody"], 3, "no agent is named"),
    (["config", "validate", "claude", "--cwd", missing], 2, "is no directory"),
    (["config", "reload"], 2, "Missing argument 'AGENT'"),
    (["config", "reload", "nobody"], 3, "no agent is named"),
    (["config", "reload", "replay"], 6, "replay does not support"),
    (["mcp", "list"], 2, "Missing argument 'AGENT'"),
    (["mcp", "list", "nobody"], 3, "no agent is named"),
    (["mcp", "list", "replay"], 6, "replay does not support MCP servers"),
    (["mcp", "add", "claude", "x"], 2, "give either a command"),
    (["mcp", "add", "claude", "x", "--url", "https://h", "--", "prog"], 2, "give either a command"),
    (["mcp", "add", "claude", "../x", "--", "prog"], 2, "1 to 64 letters"),
    (["mcp", "add", "claude", "x", "--env", "NOT_SET_ANYWHERE", "--", "prog"], 2, "a variable that is set here"),
    (["mcp", "add", "claude", "x", "--header", "A=b", "--", "prog"], 2, "are for servers with --url"),
    (["mcp", "add", "claude", "x", "--url", "https://h", "--env", "A=b"], 2, "--env is for servers with a command"),
    (["mcp", "remove", "claude"], 2, "Missing argument 'NAME'"),
    (["mcp", "remove", "claude", "x"], 2, "an MCP server of claude; it has: none"),
    (["mcp", "remove", "nobody", "x"], 3, "no agent is named"),
    (["config", "mcp", "add", "claude", "x"], 2, "give either a command"),
    (["config", "mcp", "list", "nobody"], 3, "no agent is named"),
    (["config", "mcp", "remove", "claude", "x"], 2, "an MCP server of claude"),
    (["auth", "check", "nobody"], 3, "no agent is named"),
    (["auth", "check", "replay"], 6, "replay does not support authentication"),
    (["auth", "check", "claude", "codex"], 2, "unexpected extra argument"),
    (["auth", "setup"], 2, "Missing argument 'AGENT'"),
    (["auth", "setup", "nobody"], 3, "no agent is named"),
    (["auth", "setup", "replay"], 6, "replay does not support authentication"),
    (["skill", "list"], 2, "Missing argument 'AGENT'"),
    (["skill", "list", "nobody"], 3, "no agent is named"),
    (["skill", "list", "replay"], 6, "replay does not support skills"),
    (["skill", "add", "claude"], 2, "Missing argument 'SOURCE'"),
    (["skill", "add", "claude", missing], 2, r"a folder with SKILL\.md"),
    (["skill", "add", "claude", lonely], 7, "has no header"),
    (["skill", "add", "claude", escaping], 2, "1 to 64 letters"),
    (["skill", "remove", "claude"], 2, "Missing argument 'NAME'"),
    (["skill", "remove", "claude", "../x"], 2, "a skill of claude; it has: none"),
    (["skill", "remove", "replay", "x"], 6, "replay does not support skills"),
    (["skill", "where"], 2, "Missing argument 'AGENT'"),
    (["skill", "where", "nobody"], 3, "no agent is named"),
    (["skill", "where", "replay"], 6, "replay does not support skills"),
    (["agent", "list"], 2, "Missing argument 'AGENT'"),
    (["agent", "list", "nobody"], 3, "no agent is named"),
    (["agent", "list", "replay"], 6, "replay does not support sub-agents"),
    (["agent", "add", "claude", missing], 2, r"a file, for example <name>\.md"),
    (["agent", "add", "claude"], 2, "Missing argument 'SOURCE'"),
    (["agent", "add", "nobody", missing], 3, "no agent is named"),
    (["agent", "remove", "claude", "x"], 2, "a sub-agent of claude"),
    (["agent", "remove", "claude"], 2, "Missing argument 'NAME'"),
    (["agent", "remove", "nobody", "x"], 3, "no agent is named"),
    (["agent", "where"], 2, "Missing argument 'AGENT'"),
    (["agent", "where", "nobody"], 3, "no agent is named"),
    (["agent", "where", "replay"], 6, "replay does not support sub-agents"),
    (["plugin", "list"], 2, "Missing argument 'AGENT'"),
    (["plugin", "list", "claude"], 4, "claude is not installed"),
    (["plugin", "list", "replay"], 6, "replay does not support plugins"),
    (["plugin", "search", "claude"], 2, "Missing argument 'TEXT'"),
    (["plugin", "search", "claude", "--", "-x"], 2, "does not begin with a hyphen"),
    (["plugin", "search", "nobody", "x"], 3, "no agent is named"),
    (["plugin", "install", "claude"], 2, "Missing argument 'NAME'"),
    (["plugin", "install", "claude", "--", "--force"], 2, "does not begin with a hyphen"),
    (["plugin", "install", "claude", "x"], 4, "claude is not installed"),
    (["plugin", "uninstall", "claude"], 2, "Missing argument 'NAME'"),
    (["plugin", "uninstall", "claude", "a\nb"], 2, "a text on one line"),
    (["plugin", "uninstall", "replay", "x"], 6, "replay does not support plugins"),
    (["plugin", "update", "claude"], 2, "updates them one by one"),
    (["plugin", "update", "claude", "x"], 4, "claude is not installed"),
    (["plugin", "update", "nobody"], 3, "no agent is named"),
    (["install"], 2, "Missing argument 'AGENT'"),
    (["install", "clade"], 3, "did you mean 'claude'"),
    (["install", "claude", "--method", "magic"], 2, "one that claude has on"),
    (["install", "claude", "--yes"], 4, "needs npm"),
    (["install", "replay"], 6, "no known way"),
    (["update"], 2, "Missing argument 'AGENT'"),
    (["update", "claude"], 4, "claude is not installed"),
    (["update", "nobody"], 3, "no agent is named"),
    (["capabilities"], 2, "Missing argument 'AGENT'"),
    (["capabilities", "nobody"], 3, "no agent is named"),
    (["capabilities", "claude", "--no-such-flag"], 2, "--no-such-flag"),
    (["detect", "--no-such-flag"], 2, "--no-such-flag"),
    (["detect", "nobody", "too"], 2, "unexpected extra argument"),
    (["detect", "nobody"], 3, "no agent is named"),
    (["adapters", "detect", "nobody"], 3, "no agent is named"),
    (["adapters", "detect", "--no-such-flag"], 2, "--no-such-flag"),
    (["adapters", "detect", "claude", "too"], 2, "unexpected extra argument"),
    (["schema", "everything"], 2, "Invalid value"),
    (["schema", "--no-such-flag"], 2, "--no-such-flag"),
    (["detect-host", "--debg"], 2, "--debug"),
    (["config", "mcp", "add", "nobody", "x", "--", "y"], 3, "no agent is named"),
    (["config", "mcp", "add", "replay", "x", "--", "y"], 6, "replay does not support MCP servers"),
    (["config", "mcp", "list"], 2, "Missing argument 'AGENT'"),
    (["config", "mcp", "list", "replay"], 6, "replay does not support MCP servers"),
    (["config", "mcp", "remove", "claude"], 2, "Missing argument 'NAME'"),
    (["config", "mcp", "remove", "nobody", "x"], 3, "no agent is named"),
    (["detect-host", "x"], 2, "unexpected extra argument"),
    (["detect-host", "--no-such-flag"], 2, "--no-such-flag"),
    (["detect-hst"], 2, "Did you mean 'detect-host'"),
    (["completion"], 2, "Choose from: bash, zsh, fish"),
    (["completion", "tcsh"], 2, "'bash', 'zsh', 'fish'"),
    (["completion", "bash", "zsh"], 2, "unexpected extra argument"),
    (["doctor", "nobody"], 3, "no agent is named"),
    (["doctor", "--drift", "claude"], 4, "claude is not installed"),
    (["doctor", "--no-such-flag"], 2, "--no-such-flag"),
]  # fmt: skip
