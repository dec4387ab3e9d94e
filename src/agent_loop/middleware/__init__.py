"""The six middleware that come with the package, ordinary users of the hooks registry."""
