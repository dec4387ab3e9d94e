"""The program that starts a gateway and `openclaw acp`: see `__main__.py`."""
