"""Spawning, signalling and ending processes; no other package does this."""
