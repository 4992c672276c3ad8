"""What Triton compiled, as we read it: TTIR, parameters, and what is unusual about it.

CompiledKernel ──► name, TTIR, target │ which arguments are numbers, which tensors │ refusals
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stretto.errors import StrettoError
from stretto.triton.reading import Ttir, found_triton
from stretto.triton.specializing import CHOSEN

LOOPS = re.compile(r"\bscf\.(for|while)\b")
GIVEN = ("debug", "instrumentation_mode", "backend_name")
"""Options that Triton itself gives each launch."""


@dataclass(frozen=True)
class Launched:
    """A kernel of Triton's, from what it was compiled from."""

    name: str
    names: tuple[str, ...]
    """Of all parameters, as a launch gives their arguments."""
    signature: Mapping[str, str]
    ttir: Ttir
    ptx: str
    cubin: bytes
    smem: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which arguments are numbers that the kernel is not compiled for."""
        return tuple(
            n for n, name in enumerate(self.names) if self.signature[name][:1] not in "*ct"
        )

    @property
    def tensors(self) -> tuple[int, ...]:
        """Which arguments are tensors, or descriptors of tensors."""
        return tuple(n for n, name in enumerate(self.names) if self.signature[name][:1] in "*t")

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Which arguments are descriptors that the user made."""
        return tuple(n for n in self.tensors if self.signature[self.names[n]][:1] == "t")

    @property
    def has_loop(self) -> bool:
        """Whether there is anything that one step could overlap with the next."""
        return LOOPS.search(self.ttir.text) is not None


def launched_of(kernel: Any) -> Launched:
    """A kernel that Triton compiled; StrettoError where ours have no such thing."""
    source, metadata = kernel.src, kernel.metadata
    signature: dict[str, Any] = dict(source.signature)
    target = metadata.target
    text = kernel.asm.get("ttir") if hasattr(kernel.asm, "get") else None
    if text is None:
        raise StrettoError("Triton keeps no TTIR of it; unset TRITON_STORE_BINARY_ONLY")
    names = tuple(source.fn.arg_names)
    for name in names:
        if not isinstance(signature.get(name), str):
            raise StrettoError(f"`{name}` is a tuple; give its parts one by one")
    _require_usual(metadata)
    module = Ttir(
        text, int(metadata.num_warps), int(metadata.num_stages), f"{target.backend}:{target.arch}"
    )
    ptx, cubin = kernel.asm.get("ptx", ""), kernel.asm.get("cubin", b"")
    smem = int(getattr(metadata, "shared", 0))
    return Launched(source.fn.__name__, names, signature, module, ptx, cubin, smem)


def _require_usual(metadata: Any) -> None:
    """StrettoError where a launch asks for what is not emitted."""
    target = metadata.target
    plain: dict[str, Any] = vars(
        found_triton().backend((target.backend, target.arch)).parse_options({})
    )
    for name, value in plain.items():
        if name in CHOSEN or name in GIVEN or not hasattr(metadata, name):
            continue
        given = getattr(metadata, name)
        if _plain(given) != _plain(value):
            raise StrettoError(f"the launch asks for {name}={given}, which is not emitted")


def _plain(value: object) -> object:
    """As JSON has it, which is how Triton keeps options."""
    return json.loads(json.dumps(value, default=str))
