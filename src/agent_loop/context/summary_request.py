"""How a summary of old messages is asked for: by the engine, and by the middleware that does the same."""

MAX_WORDS = 2_000
SUMMARY_REQUEST = (
    f"Summarize this conversation in at most {MAX_WORDS:,} words, for the agent, which goes on with the work and sees "
    "nothing else of what was before. Tell what the user wants, in their words where the words matter; what was "
    "decided and why; which files were read, made or changed, and how; what commands and tests showed; what failed; "
    "and what is still to be done. No preface."
)
