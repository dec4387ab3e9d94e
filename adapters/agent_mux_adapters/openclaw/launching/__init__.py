"""The launcher: a program that starts a gateway and `openclaw acp`. See `__main__.py`."""
