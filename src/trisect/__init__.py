"""trisect: what a distributed imaging solver spends its GPUs' time on."""

from importlib.metadata import version

__version__ = version("trisect")
