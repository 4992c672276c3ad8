"""Compiles emitted source for a Hopper GPU, without one, and tells what the assembler says of it.

source ──► Triton ──► PTX ──► ptxas -v      registers, spills, remarks of lost performance (C75xx)
                      cubin ──► nvdisasm    machine code: loops are predicted by it, and checked
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

from stretto.emission import Emitted
from stretto.emission.gluon.expressions import DTYPES
from stretto.launching.compiler import ARCHITECTURE, can_compile, own_ptxas
from stretto.prediction.code.listing import read_listing
from stretto.prediction.code.overwriting import overwritten
from stretto.prediction.stock import Stock

WARP = 32
__all__ = [
    "ARCHITECTURE",
    "Compiled",
    "can_compile",
    "compile_emitted",
    "compile_stock",
    "stock_of",
]
HELD = ".load(gl.DotOperandLayout(0"
"""How the text reads a factor that all steps of a loop take."""


@dataclass(frozen=True)
class Compiled:
    """What became of emitted source."""

    spilled: int
    """Bytes that are stored because registers do not do."""
    remarks: tuple[str, ...]
    """What the assembler says of products that it cannot run as written."""
    smem: int
    """Bytes of shared memory, with what layouts are converted through."""
    registers: int
    """Of a thread."""
    code: str = field(default="", repr=False)
    """Machine code as nvdisasm prints it, where it was asked already."""
    overwritten: bool = False
    """Whether a loop overwrites a factor that it still needs, and so is wrong."""

    cubin: bytes = field(default=b"", repr=False)

    @property
    def listing(self) -> str:
        """Machine code, as nvdisasm prints it, which takes as long as the assembler."""
        return self.code or _listed(self.cubin)

    @property
    def clean(self) -> bool:
        """Whether the kernel runs as it was scheduled."""
        return not self.spilled and not self.remarks and not self.overwritten


def compile_emitted(emitted: Emitted) -> Compiled:
    """Compile to a cubin for sm_90; needs Triton, and no GPU. What Triton raises goes through."""
    gl: Any = import_module("triton.experimental.gluon.language")
    runtime: Any = import_module("triton.experimental.gluon._runtime")
    backends: Any = import_module("triton.backends.compiler")
    triton: Any = import_module("triton")
    with tempfile.TemporaryDirectory() as scratch:
        function = _loaded(Path(scratch) / "emitted.py", emitted)
        signature = {name: _signed(name, emitted, gl) for name in emitted.parameters}
        signature["num_warps"] = "constexpr"
        names: list[str] = function.arg_names
        fixed = {(names.index("num_warps"),): emitted.warps}
        tiles = emitted.program.tiles
        counted = () if tiles is None else tiles.arguments
        even = {
            (names.index(name),): [["tt.divisibility", 16]]
            for name, type in signature.items()
            if type.startswith(("i", "*")) and name not in counted
        }
        source = runtime.GluonASTSource(function, signature, fixed, even)
        options: dict[str, int] = {"num_warps": emitted.warps}
        if emitted.maxnreg is not None:
            options["maxnreg"] = emitted.maxnreg
        target = backends.GPUTarget("cuda", ARCHITECTURE, WARP)
        kernel, said = _told(lambda: triton.compile(source, target=target, options=options))
        if " registers" not in said:  # it was in Triton's cache
            ptx = Path(scratch) / "emitted.ptx"
            ptx.write_text(kernel.asm["ptx"])
            said = _assembled(ptx, own_ptxas())
    remarks = sorted({line.strip() for line in said.splitlines() if "(C75" in line})
    shared = int(kernel.metadata.shared)
    cubin: bytes = kernel.asm["cubin"]
    code = disassembled(cubin) if HELD in emitted.source else ""
    wrong = bool(code) and overwritten(read_listing(code))
    return Compiled(_spilled(said), tuple(remarks), shared, _registers(said), code, wrong, cubin)


def _told(compile: Callable[[], Any]) -> tuple[Any, str]:
    """What Triton compiles, and what ptxas said, which Triton prints where it is asked to."""
    knobs: Any = import_module("triton.knobs").nvidia
    said = io.StringIO()
    with knobs.scope(), redirect_stdout(said):
        knobs.dump_ptxas_log = True
        made = compile()
    return made, said.getvalue()


def compile_stock(ttir: str, warps: int, stages: int) -> Stock:
    """A kernel as Triton itself compiles it from its stage `ttir`; what it raises goes through."""
    backends: Any = import_module("triton.backends.compiler")
    triton: Any = import_module("triton")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "kernel.ttir"
        file.write_text(ttir, encoding="utf-8")
        target = backends.GPUTarget("cuda", ARCHITECTURE, WARP)
        options = {"num_warps": warps, "num_stages": stages}
        kernel = triton.compile(str(file), target=target, options=options)
    return stock_of(kernel.asm["ptx"], kernel.asm["cubin"], warps, stages, kernel.metadata.shared)


def stock_of(ptx: str, cubin: bytes, warps: int, stages: int, smem: int) -> Stock:
    """What a prediction asks of a kernel that Triton compiled."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "kernel.ptx"
        file.write_text(ptx)
        said = _assembled(file, own_ptxas())
    return Stock(disassembled(cubin), warps, stages, _registers(said), smem, _spilled(said))


def _registers(said: str) -> int:
    return max(int(used) for used in re.findall(r"Used (\d+) registers", said))


def _spilled(said: str) -> int:
    return sum(int(stored) for stored in re.findall(r"(\d+) bytes spill stores", said))


def _loaded(file: Path, emitted: Emitted) -> Any:
    """The Gluon function of emitted source, which Triton wants in a file."""
    file.write_text(emitted.source, encoding="utf-8")
    spec = util.spec_from_file_location(f"stretto_emitted_{os.getpid()}", file)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return getattr(module, f"{emitted.name}_kernel")


def _signed(name: str, emitted: Emitted, gl: Any) -> str:
    """A parameter as Triton's signatures write it; descriptors tell their layout."""
    text = emitted.parameters[name]
    if name not in emitted.descriptors:
        return text
    _, block, element = emitted.descriptors[name]
    dtype = getattr(gl, DTYPES[element].removeprefix("gl."))
    return text.replace("{layout}", repr(gl.NVMMASharedLayout.get_default_for(list(block), dtype)))


def _assembled(ptx: Path, ptxas: Path) -> str:
    """What ptxas says."""
    command = [str(ptxas), "-v", f"--gpu-name=sm_{ARCHITECTURE}a", str(ptx), "-o", os.devnull]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout + run.stderr


@lru_cache(maxsize=8)
def _listed(cubin: bytes) -> str:
    return disassembled(cubin) if cubin else ""


def disassembled(cubin: bytes) -> str:
    """Machine code as nvdisasm prints it, or nothing where a Triton does not bring that along."""
    nvdisasm = own_ptxas().with_name("nvdisasm")
    if not nvdisasm.exists():
        return ""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "made.cubin"
        file.write_bytes(cubin)
        command = [str(nvdisasm), "-c", "-hex", str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""
