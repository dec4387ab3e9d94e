"""The paths, one module for each kind of thing. They translate between HTTP and the library, and nothing else."""
