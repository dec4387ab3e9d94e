"""Coding tasks: where does the harness fail, and not the model?

40 small repositories have failing hidden tests. A scripted model solves each of them with the same abstract steps,
mistakes and reactions in every harness, compiled to its tools. It works without a harness, too: `test_coding_tasks`
applies the steps directly, and the hidden tests pass. What fails with a harness is therefore a failure of the harness.
"""
