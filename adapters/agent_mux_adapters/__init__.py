"""The built-in adapters: one folder per agent. See docs/how-to/write-an-adapter/README.md."""
