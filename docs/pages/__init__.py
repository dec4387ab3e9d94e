"""Generators of the reference pages that are derived from code and recordings, one module per page."""
