"""Comparisons of the service: requested, carried out, stored, streamed."""
