"""The control socket of a run: how other processes of the same user watch it and talk to it."""
