"""What programs are told, as JSON: `amux ... --json` and the service say the same.

Names are camelCase. A field that is not there is left out; where it may be null, its type says so.
"""

import msgspec


class JsonView(msgspec.Struct, rename="camel", kw_only=True):
    """A field that is not there is left out; it is never null."""
