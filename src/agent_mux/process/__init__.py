"""The only rooms that start, signal and end processes."""
