"""The reference pages that are made from code and recordings, one module each."""
