"""Every kernel that ships, read and lowered for a machine: milliseconds, the best of five.

python benchmarks/kernels_in.py
"""

from __future__ import annotations

import time
from pathlib import Path

from stretto.compile.sources import kernels_of
from stretto.ir.kernels.writing import lowered_module
from stretto.machine import load_machine

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MACHINE = "b200-pipes"
REPEATS = 5


def main() -> None:
    """A line a kernel."""
    machine = load_machine(MACHINE)
    for file in sorted([*EXAMPLES.glob("triton/*.ttir"), *EXAMPLES.glob("cutile/*.tileirbc")]):
        took: list[float] = []
        content = file.read_bytes()
        given = content if file.suffix == ".tileirbc" else content.decode()
        for _ in range(REPEATS):
            began = time.process_time()
            lowered_module(kernels_of(str(file), given), machine)
            took.append(time.process_time() - began)
        print(f"{file.name:40} {min(took) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
