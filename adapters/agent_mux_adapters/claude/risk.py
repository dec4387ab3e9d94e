"""How risky is what the agent asks permission for? Source: agent-events spec, section 18.1 (`riskLevel`).

low: reads; medium: file writes and ordinary commands; high: destructive, network or privileged. A guess for the
person who decides, made from the tool and, for commands, from the words in it: when in doubt it says the higher one.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from agent_mux.facts import Risk
from agent_mux_adapters._dialects.tolerant import text

LOW_TOOLS = frozenset({
    "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TaskList", "TaskGet", "BashOutput", "TaskOutput",
    "AskUserQuestion", "EnterPlanMode", "ToolSearch", "ListMcpResourcesTool",
})  # fmt: skip
HIGH_TOOLS = frozenset({"WebFetch", "WebSearch", "RemoteTrigger"})
COMMAND_TOOLS = frozenset({"Bash", "PowerShell"})

PRIVILEGED = frozenset({"sudo", "su", "doas", "pkexec", "chown", "mount", "umount", "systemctl", "service", "crontab"})
DESTRUCTIVE = frozenset({
    "rm", "rmdir", "shred", "dd", "mkfs", "fdisk", "truncate", "kill", "pkill", "killall", "shutdown", "reboot",
    "remove-item", "chmod",
})  # fmt: skip
NETWORK = frozenset({
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "telnet", "ftp", "aws", "gcloud", "az", "kubectl",
    "invoke-webrequest", "iwr", "gh",
})  # fmt: skip
HIGH_PAIRS = frozenset({
    ("git", "push"), ("git", "reset"), ("git", "clean"), ("git", "clone"), ("git", "fetch"), ("git", "pull"),
    ("npm", "install"), ("npm", "publish"), ("pip", "install"), ("brew", "install"), ("apt", "install"),
    ("apt-get", "install"), ("docker", "run"), ("docker", "push"), ("terraform", "apply"), ("terraform", "destroy"),
})  # fmt: skip
READING = frozenset({
    "ls", "cat", "head", "tail", "grep", "rg", "wc", "pwd", "echo", "stat", "file", "which", "tree", "diff", "date",
    "whoami", "uname", "id", "du", "df",
})  # fmt: skip
SEPARATORS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))


def assess(tool: str, arguments: Mapping[str, Any]) -> Risk:
    """The risk of calling this tool with these arguments."""
    if tool in COMMAND_TOOLS:
        return _of_command(text(arguments.get("command")))
    if tool in LOW_TOOLS:
        return "low"
    return "high" if tool in HIGH_TOOLS else "medium"


def _of_command(command: str) -> Risk:
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(SEPARATORS).split()]
    alarming = PRIVILEGED | DESTRUCTIVE | NETWORK
    if not alarming.isdisjoint(words) or not HIGH_PAIRS.isdisjoint(pairwise(words)):
        return "high"
    only_reads = bool(words) and words[0] in READING and not set(command) & set(";|&<>`$\n")
    return "low" if only_reads else "medium"
