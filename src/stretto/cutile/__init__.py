"""cuTile kernels from Python. cuTile is needed: `pip install cuda-tile`.

stretto.cutile.read(matmul, [array, array, array, 128, 128, 64])        a kernel
"""

from stretto.cutile.reading import read

__all__ = ["read"]
