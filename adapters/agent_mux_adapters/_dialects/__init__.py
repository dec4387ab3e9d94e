"""Native formats and protocols that several agents share, and helpers for reading native JSON."""
