"""What hosts see as `triton.tools.mxfp`: numbers of four bits, and scales that are powers of two.

MXFP4Tensor(size=(M, K)).random().to_packed_tensor(dim=1)   ──►   two numbers a byte
MXScaleTensor(size=(M, K // 32)).random().data              ──►   exponents, 127 for 1
"""

# Stand-ins have no types: host code calls them with anything.
# pyright: basic

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.sanitizer.stand_ins import tensors
from stretto.sanitizer.stand_ins.products import E2M1
from stretto.sanitizer.stand_ins.tensors import Tensor, tensor_of
from stretto.sanitizer.values import DTYPES

_BYTE = DTYPES["uint8"]


class MXFP4Tensor:
    """Numbers of four bits, one a byte."""

    def __init__(self, data: Any = None, size: Any = None, **_: Any) -> None:
        self.size = tuple(size if size is not None else data.shape)
        codes = np.zeros(self.size, np.uint8)
        if data is not None:
            codes = np.abs(data.numbers()[..., None] - E2M1).argmin(-1).astype(np.uint8)
        self.data: Tensor = Tensor(codes, _BYTE)

    def random(self) -> MXFP4Tensor:
        """Any of the sixteen."""
        self.data = tensors.random_integers(0, 16, self.size, _BYTE)
        return self

    def to(self, dtype: Any) -> Tensor:
        """As numbers."""
        return tensor_of(E2M1[self.data.raw], dtype)

    def to_packed_tensor(self, dim: int) -> Tensor:
        """Two a byte, the first in the lower half."""
        first = self.data.raw.take(range(0, self.size[dim], 2), dim)
        second = self.data.raw.take(range(1, self.size[dim], 2), dim)
        return Tensor(first | second << 4, _BYTE)


class MXScaleTensor:
    """Scales as exponents."""

    def __init__(self, data: Any = None, size: Any = None, **_: Any) -> None:
        self.size = tuple(size if size is not None else data.shape)
        codes = np.zeros(self.size, np.uint8)
        if data is not None:
            codes = (np.floor(np.log2(data.numbers())) + 127).astype(np.uint8)
        self.data: Tensor = Tensor(codes, _BYTE)

    def random(self, low: Any = None, high: Any = None) -> MXScaleTensor:
        """Between two powers of two."""
        first = 0 if low is None else int(math.log2(low)) + 127
        last = 254 if high is None else int(math.log2(high)) + 127
        self.data = tensors.random_integers(first, last + 1, self.size, _BYTE)
        return self

    def to(self, dtype: Any) -> Tensor:
        """As numbers."""
        return tensor_of(np.exp2(self.data.raw.astype(np.float32) - 127), dtype)
