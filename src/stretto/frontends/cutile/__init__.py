"""cuTile kernels: Tile IR bytecode to the operations that every kernel is made of.

    kernel.tileirbc ──► tileir.Module ──► Kernel

    load_view_tko weak %view[%i, %k]      ──►   tile.view_load %view, %i × 128, %k × 64
    loop { if %c { break %x } continue %y }     scf.while with one condition
    assume div_by<16>, %arg0                    a promise of the parameter

Tokens order memory operations no more than the order of the program does, so they go.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.frontends.cutile.translating import translate
from stretto.frontends.tileir import read_bytecode
from stretto.kernel import Kernel
from stretto.kernel.checking import check_kernel

__all__ = ["read_cutile"]


def read_cutile(file: str, data: bytes, names: Sequence[str] = ()) -> tuple[Kernel, ...]:
    """The kernels in the bytes of a file; `file` is what errors call it.

    Bytecode has no names of parameters: they are `arg0`, `arg1`, ... if none are given. An array is
    one parameter, and its sizes and strides have the same name as its address.
    """
    module = read_bytecode(file, data)
    kernels = tuple(translate(function, file, names) for function in module.functions)
    for kernel in kernels:
        check_kernel(kernel)
    return kernels
