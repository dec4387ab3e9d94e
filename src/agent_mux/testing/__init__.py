"""What proves adapters: a scripted model, recordings, and the real CLIs, offline. Shipped for adapter authors.

Needs the extra: `pip install 'agent-mux[testing]'` (only the model server does; the rest is the standard library).
"""
