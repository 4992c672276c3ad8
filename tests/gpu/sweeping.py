"""A sweep over the constexprs of a Triton kernel: `python sweeping.py PYTHON` (`make test-gpu`).

    matmul_descriptors.py, BLOCK_M × BLOCK_N × BLOCK_K ──► TTIR (by PYTHON's Triton) ──► schedules

No GPU is needed. The configuration that ships as .ttir must come to what that file comes to, and a
kernel that Triton refuses must be a row that says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import stretto

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "examples" / "triton" / "matmul_descriptors"
TYPES = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
GRID = ("BLOCK_M=64,128", "BLOCK_N=64,128,100", "BLOCK_K=32,64")
"""A tile of 100 columns is none: Triton takes powers of two."""


def swept(python: str) -> dict[str, Any]:
    """The document of the sweep, made by a Python that has Triton."""
    here = [str(ROOT / "src"), sysconfig.get_paths()["purelib"]]
    command = [python, "-c", "from stretto.cli import run; run()", "sweep", "--json", "--no-cache"]
    command += ["--function", f"{KERNEL}.py:matmul_descriptors", "--machine", "h200"]
    command += [part for axis in GRID for part in ("--axis", axis)]
    command += [p for name, type in TYPES.items() for p in ("--signature", f"{name}={type}")]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here)}
        environment.setdefault("TRITON_CACHE_DIR", cache)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr + done.stdout)
    return json.loads(done.stdout)


def main() -> None:
    """Hold the sweep against the file that ships."""
    rows = swept(sys.argv[1])["configurations"]
    shipped = stretto.schedule(stretto.read(f"{KERNEL}.ttir", "h200")[0], "h200")
    for row in rows:
        block = row["values"]
        if block["BLOCK_N"] == 100:
            assert not row["success"]
            assert "Triton cannot compile" in row["error"], row["error"]
            continue
        assert row["success"], row["error"]
        if list(block.values()) == [128, 128, 64]:
            assert (row["ii"], row["stages"]) == (shipped.ii, shipped.stage_count), row
    sys.stdout.write(f"{len(rows)} configurations of a Triton kernel swept\n")


if __name__ == "__main__":
    main()
