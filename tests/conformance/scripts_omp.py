"""omp uses pi's dialect, and the same scripts."""

from dataclasses import replace
from functools import partial

from tests.conformance.content_blocks import named_call
from tests.conformance.scripts_pi import DIALECT as PI
from tests.conformance.scripts_pi import native_results

__all__ = ["DIALECT", "native_results"]

DIALECT = replace(PI, call=partial(named_call, mcp="mcp__{server}_{tool}", delegate="task"))
