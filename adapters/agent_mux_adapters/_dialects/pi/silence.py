"""Lines and roles that are known and say nothing about the run, and why."""

from collections.abc import Mapping

SILENT_LINES: Mapping[str, str] = {
    "bash_execution_update": "a command of the client, not of the agent",
    "entry_appended": "bookkeeping of the session file",
    "queue_update": "what the client queued",
    "session_info_changed": "the name of the session",
    "summarization_retry_attempt_start": "the retry was told when it was scheduled",
    "summarization_retry_finished": "the end of the compaction follows",
    "thinking_level_changed": "a setting",
}

SILENT_ROLES: Mapping[str, str] = {
    "bashExecution": "a command of the client, not of the agent",
    "branchSummary": "what the agent tells the model of another branch",
    "compactionSummary": "told by the end of the compaction",
    "custom": "words that an extension injected",
    "developer": "words that the agent injected",
    "system": "the agent's instructions",
    "toolResult": "told by the end of the execution",
    "user": "the prompt",
}
