"""omp uses pi's dialect, and the same scripts."""

from tests.conformance.scripts_pi import DIALECT, native_results

__all__ = ["DIALECT", "native_results"]
