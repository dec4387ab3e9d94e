"""The JSON views that the command line (`amux ... --json`) and the service share.

Keys are in camelCase. A field without a value is omitted; only fields whose type allows null are ever null.
"""

import msgspec


class JsonView(msgspec.Struct, rename="camel", kw_only=True):
    """Base class of the views. A field without a value is UNSET and therefore omitted."""
