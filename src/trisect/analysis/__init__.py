"""Pure functions on tables: from what ranks did to what it cost. docs/metrics.md derives every number."""

from trisect.analysis.decompose import Decomposition, decompose
from trisect.analysis.scaling import scaling

__all__ = ["Decomposition", "decompose", "scaling"]
