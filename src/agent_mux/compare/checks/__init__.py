"""Checks: what decides whether a trial passed. They run after the agent has ended, in a fresh checkout of its result.

`definitions` reads them, `running` runs them, `flakiness` uses their results on the untouched start, `protected` and
`hidden` keep agents from deciding by changes of tests.
"""
