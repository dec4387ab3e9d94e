"""The HTTP service behind `amux serve`. Needs the extra `service`.

`settings` holds its options, `service` opens everything that works without HTTP, `application` builds the ASGI
application, `server` listens. `routes/` has the endpoints, `runs/` the runs, `webhooks/` the webhooks, `store/` the
database, `security/` the checks before every route, `openapi/` the document.
"""
