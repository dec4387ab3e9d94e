"""The HTTP endpoints, one module for each kind of resource. They translate between HTTP and the library."""
