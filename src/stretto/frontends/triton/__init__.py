"""Triton kernels, from the `.ttir` that Triton writes into its cache and its dumps.

    kernel.ttir ──► parsing ──► translating ──► Kernel
    kernel.json (beside it: warps, stages, target) ──┘

Both the form Triton prints, of versions 3.4 to 3.9, and MLIR's generic form are read. Triton itself
is not needed.
"""

from __future__ import annotations

from stretto.frontends.triton.metadata import with_options
from stretto.frontends.triton.parsing import ModuleParser
from stretto.frontends.triton.translating import FunctionTranslator
from stretto.kernel import Kernel, KernelError, Location
from stretto.kernel.checking import check_kernel
from stretto.limits import MODULE_CHARACTERS


def read_ttir(file: str, text: str, beside: tuple[str, str] | None = None) -> tuple[Kernel, ...]:
    """The kernels of a TTIR module; KernelError if it is wrong, or has what cannot be read.

    `beside` is the .json that Triton writes with it, if there is one: its path and its text.
    """
    if len(text) > MODULE_CHARACTERS:
        told = f"is too large; a module has at most {MODULE_CHARACTERS:,} characters"
        raise KernelError(Location(file), told)
    parser = ModuleParser(file, text)
    kernels: list[Kernel] = []
    for operation in parser.module():
        public = operation.attributes.get("sym_visibility") != "private"
        if operation.name != "tt.func":
            raise parser.fail(f"`{operation.name}` outside of a function", operation.offset)
        if public and operation.regions:
            kernel = FunctionTranslator(parser, operation).kernel()
            check_kernel(kernel)
            kernels.append(kernel if beside is None else with_options(kernel, *beside))
    if not kernels:
        raise KernelError(Location(file), "has no kernel", "expected a public tt.func")
    return tuple(kernels)


__all__ = ["read_ttir"]
