"""The native dialect of pi and of the agents made from it: a stream of events (json mode), and commands (rpc mode)."""
