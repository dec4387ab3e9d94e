"""Webhooks: notify other programs when a run starts, ends, or needs a person.

`manager` keeps the webhooks and decides which messages they receive, `delivery` delivers the messages with retries,
`sender` makes one attempt, `schemas` has the JSON of requests and responses.
"""
