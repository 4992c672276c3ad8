"""Kernels predicted by their machine code: `python predicting.py PYTHON` (`make test-gpu`).

    examples/triton/KERNEL ──► Gluon ──► cubin (by PYTHON's Triton) ──► nvdisasm ──► cycles

No GPU is needed. What a real assembler writes must be recognized; it may differ from what tiles
tell by no more than by a quarter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = [f"{name}=8192" for name in "MNK"]
KERNELS = (
    ("matmul_persistent", "132", PRODUCT, "1"),
    ("matmul_persistent", "132", PRODUCT, "2"),
    ("attention_forward_d64", "64,16", ["length=8192"], "1"),
    ("attention_forward_d128", "64,16", ["length=8192"], "2"),
)
"""Names, grids, arguments and consumers."""


def cycles(python: str, words: list[str]) -> tuple[float, bool]:
    """Of an iteration, and whether machine code told them."""
    here = [str(ROOT / "src"), sysconfig.get_paths()["purelib"]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here)}
    command = [python, "-c", "from stretto.cli import run; run()", "predict", "--json", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr + done.stdout)
    (loop, *_) = json.loads(done.stdout)["predictions"][0]["loops"]
    return loop["cycles"], loop["by_machine_code"]


def main() -> None:
    """Hold both against each other."""
    for name, grid, arguments, consumers in KERNELS:
        words = [str(ROOT / "examples" / "triton" / f"{name}.ttir"), "--grid", grid]
        words += ["--consumers", consumers]
        words += [word for argument in arguments for word in ("--argument", argument)]
        tiles, told = cycles(sys.argv[1], words)
        assert not told, name
        code, told = cycles(sys.argv[1], [*words, "--assembled"])
        assert told, f"{name}: what nvdisasm printed was not recognized"
        assert abs(code / tiles - 1) < 1 / 4, (name, code, tiles)
        both = f"{code:.0f} cycles by machine code, {tiles:.0f} by tiles"
        sys.stdout.write(f"{name}, {consumers} consumers: {both}\n")


if __name__ == "__main__":
    main()
