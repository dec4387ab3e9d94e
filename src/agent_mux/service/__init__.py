"""The service behind `amux serve`: HTTP over the same handles. Needs the extra `service`.

`settings` says what it is to do, `application` puts it together, `serving` listens. `runs/` keeps the runs, `store/`
what survives a restart, `routes/` the paths, one module for each kind of thing.
"""
