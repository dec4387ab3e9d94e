"""The test kit for adapter authors: a scripted model, recordings and a conformance suite, and real CLIs, offline.

It is a distribution of its own, `agent-mux-testing`, which the extra `agent-mux[testing]` installs.
"""
