"""Webhooks: other programs are told when a run starts, ends, or needs a person.

`webhooks.py` keeps them and decides who is told what; `delivering.py` brings it to them, by `sending.py`, to where
`addresses.py` lets it.
"""
