"""Triton kernels from Python. Triton is needed: `pip install stretto[gpu]`.

@stretto.triton.pipeline            at launch: read, scheduled, emitted as Gluon, launched
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, …): …

stretto.triton.read(matmul, signature=…, constexprs=…)      a kernel, without a GPU
"""

from stretto.launching import PipelineWarning
from stretto.triton.pipelining import Pipelined, pipeline
from stretto.triton.reading import read
from stretto.triton.tuning import rank

__all__ = ["PipelineWarning", "Pipelined", "pipeline", "rank", "read"]
