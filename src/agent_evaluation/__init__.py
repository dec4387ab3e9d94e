"""Evaluation of attempts at one task: outcomes, and strategies that select among them.

Pure functions over plain values. The package imports neither agent-mux nor the embedded agent, so that both use it.
"""
