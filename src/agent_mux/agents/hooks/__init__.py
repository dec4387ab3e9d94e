"""Hooks: handlers that are called when an agent does something. See docs/spec/run-api.md, section 7.

A user registers handlers in `hooks.json` (`registrations`, `hooks_json`). They are called (`dispatch`, `programs`,
`builtins`) for events of runs, or by agents with native hooks: `native_hooks` writes our command line into the agent's
own files (`agent_files`), and `native_calls` answers when the agent runs it.
"""
