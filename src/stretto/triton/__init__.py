"""Triton kernels from Python. Triton is needed: `pip install stretto[gpu]`.

@stretto.triton.pipeline            tried at its launches: pipelined by us where that is faster
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, …): …

stretto.triton.install()            the same for all kernels of a process
stretto.triton.verdicts()           what runs which launches, and how fast
stretto.triton.read(matmul, signature=…, constexprs=…)      a kernel, without a GPU
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.launching import PipelineWarning
from stretto.launching.verdicts import Verdict, verdicts
from stretto.triton.installing import install, uninstall
from stretto.triton.pipelining import pipeline
from stretto.triton.reading import read

if TYPE_CHECKING:
    from stretto.triton.tuning import rank

__all__ = [
    "PipelineWarning",
    "Verdict",
    "install",
    "pipeline",
    "rank",
    "read",
    "uninstall",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """What ranks takes long to load, and no launch needs it."""
    if name == "rank":
        from stretto.triton.tuning import rank  # noqa: PLC0415

        return rank
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
