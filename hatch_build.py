"""Build hook: compile the seating loops where a C compiler is at hand; without one, Python runs.

`STRETTO_PURE=1` compiles nothing, for a wheel that every platform takes.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/stretto/generate/kernel")
SOURCES = ("seats", "moving")
"""Modules to compile: Python runs `seats.py` where nothing is, and `seats.pxd` has its types."""


class CompileHook(BuildHookInterface[Any]):
    """Puts the compiled module beside its source, in wheels and in editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile; on a machine without a compiler Python runs the sources, and says so."""
        if self.target_name != "wheel" or os.environ.get("STRETTO_PURE"):
            return
        root = Path(self.root)
        try:
            built = _compile(root)
        except Exception as error:  # whatever a compiler says: Python runs the sources
            told = f"stretto: not compiled, Python will run the seating loops ({error})"
            print(told, file=sys.stderr)  # noqa: T201 - a build tells on the terminal
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for made in built:
            inside = Path("stretto/generate/kernel") / made.name
            build_data["force_include"][str(made)] = str(inside)


def _compile(root: Path) -> list[Path]:
    cython = import_module("Cython.Build")
    setuptools = import_module("setuptools")
    build_ext = import_module("setuptools.command.build_ext").build_ext
    scratch = root / "build" / "kernel"
    names = {f"stretto.generate.kernel.{name}": f"{name}.py" for name in SOURCES}
    # The same bytes wherever it is built: no paths, no times, no names of debug files.
    cut = [] if sys.platform == "win32" else [f"-ffile-prefix-map={root}=.", "-g0"]
    extensions = [
        setuptools.Extension(name, [str(root / FOLDER / file)], extra_compile_args=["-O3", *cut])
        for name, file in names.items()
    ]
    modules = cython.cythonize(extensions, build_dir=str(scratch), quiet=True)
    command = build_ext(setuptools.Distribution({"ext_modules": modules}))
    command.build_temp = str(scratch)
    command.build_lib = str(scratch)
    command.ensure_finalized()
    command.run()
    built: list[Path] = []
    for name in names:
        made = Path(command.get_ext_fullpath(name))
        beside = root / FOLDER / made.name
        beside.write_bytes(made.read_bytes())
        built.append(beside)
    return built
