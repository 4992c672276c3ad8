"""Programs of whole kernels that stand in a file: as they were written, or as a hand left them."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from stretto.api.read_write import is_mlir, path_of, read_input
from stretto.errors import DocumentError
from stretto.files import STANDARD
from stretto.kernel import Kernel

if TYPE_CHECKING:
    from stretto.program import KernelProgram

_HOLDS = '"stretto.kernel_program"('


def holds_program(text: str) -> bool:
    """Whether a module holds the program of a whole kernel."""
    return _HOLDS in text


def program_in(kernel: str | PathLike[str] | Kernel) -> KernelProgram | None:
    """The program that an MLIR file holds, found to be sound by clocks; None where it holds none.

    MlirError at its place where it cannot be read, FaultError where it may go wrong.
    """
    if isinstance(kernel, Kernel):
        return None
    path = path_of(kernel, "a kernel, or the path of one,")
    if path == STANDARD:  # which can be read once
        return None
    file, text = read_input(path)
    if not is_mlir(text) or not holds_program(text):
        return None
    from stretto.ir.kernel_programs import read_kernel_program  # noqa: PLC0415 - where there is one
    from stretto.program.clocks import check_program  # noqa: PLC0415 - likewise

    program = read_kernel_program(file, text)
    check_program(program)
    return program


def require_kernel(file: str, text: str) -> None:
    """That a module holds a kernel, not the program of one; DocumentError where it does."""
    if holds_program(text):
        hint = "stretto emit FILE prints it, stretto simulate FILE runs it"
        raise DocumentError(file, "", "holds the program of a kernel, which stands", hint)
