"""cuTile kernels: Tile IR bytecode to the operations that every kernel is made of.

    kernel.tileirbc ──► tileir.Module ──► Kernel

    load_view_tko weak %view[%i, %k]      ──►   tile.view_load %view, %i × 128, %k × 64
    loop { if %c { break %x } continue %y }     scf.while with one condition
    assume div_by<16>, %arg0                    a promise of the parameter

Tokens order memory operations no more than the order of the program does, so they go.
"""

from __future__ import annotations

from stretto.frontends.cutile.translate import translate
from stretto.frontends.tileir import is_bytecode, read_bytecode
from stretto.kernel import Kernel, check_kernel

__all__ = ["is_bytecode", "read_cutile"]


def read_cutile(file: str, data: bytes) -> tuple[Kernel, ...]:
    """The kernels in the bytes of a file; `file` is what errors call it."""
    module = read_bytecode(file, data)
    kernels = tuple(translate(function, file) for function in module.functions)
    for kernel in kernels:
        check_kernel(kernel)
    return kernels
