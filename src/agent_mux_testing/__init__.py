"""The test kit for adapter authors: a scripted model, recordings and a conformance suite, and real CLIs, offline.

The model server needs the extra: `pip install 'agent-mux[testing]'`. The rest needs only the standard library.
"""
