"""The agents' own configuration files: reading, validating and changing them without losing anything."""
