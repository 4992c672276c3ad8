"""The compiler that candidates are held against: which Triton, which assembler, what they go by."""

from __future__ import annotations

from importlib import import_module, util
from pathlib import Path
from typing import Any

from stretto.caching import version_of

ARCHITECTURE = 90


def can_compile() -> bool:
    """Whether there is a Triton that compiles for such GPUs."""
    found = util.find_spec("triton")
    return found is not None and found.origin is not None and _ptxas(Path(found.origin)).exists()


def compiler_name() -> str:
    """Which Triton and which assembler candidates are compiled by, and all that those go by."""
    if not can_compile():
        return ""
    compiler: Any = import_module("triton.compiler.compiler")
    nvidia: Any = import_module("triton.backends.nvidia.compiler")
    variables = getattr(compiler, "get_cache_invalidating_env_vars", dict[str, str])()
    version = nvidia.get_ptxas(ARCHITECTURE).version
    return f"triton {version_of('triton')}, ptxas {version}, {sorted(variables.items())}"


def _ptxas(triton: Path) -> Path:
    """The assembler that Triton brings along."""
    return triton.parent / "backends" / "nvidia" / "bin" / "ptxas"


def own_ptxas() -> Path:
    """The assembler that Triton itself takes for such GPUs: newer versions bring two."""
    compiler: Any = import_module("triton.backends.nvidia.compiler")
    return Path(compiler.get_ptxas(ARCHITECTURE).path)
