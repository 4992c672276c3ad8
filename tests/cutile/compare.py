"""Do we read of Tile IR bytecode what its own writer wrote and its own disassembler reads?

    every operation, arguments made up ──► cuTile's writer ──► bytecode ──► our tree = the arguments
    the example kernels, kernels.py    ──► cuTile          ──► bytecode ──► our tree = disassembly
    the example kernels                ──► stretto.cutile.read, with the names of their parameters

Usage: compare.py ORACLE_PYTHON. For each version of the bytecode, 13.1 to 13.4.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tests"))

from disassembly import compare  # noqa: E402
from stretto.frontends.tileir import read_bytecode  # noqa: E402
from written_operations import differences  # noqa: E402

VERSIONS = ("13.1", "13.2", "13.3", "13.4")
SEEDS, REPEATS = 8, 6


def run(oracle: str, *words: str) -> str:
    """What a script prints, run by the oracle's Python from the project's folder."""
    ran = subprocess.run(
        [oracle, *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return ran.stdout


def operations(oracle: str, scratch: str) -> list[str]:
    """Differences between operations and what their writer was asked for."""
    run(oracle, str(HERE / "write_operations.py"), scratch, str(SEEDS), str(REPEATS))
    number, found = 0, list[str]()
    for file in sorted(Path(scratch).glob("*.tileirbc")):
        written, unlike = differences(file)
        number += written
        found += unlike
    sys.stdout.write(f"{number:,} operations of {4 * SEEDS} files as they were written\n")
    return found


def kernels(oracle: str, scratch: str) -> list[str]:
    """Differences between kernels and what the disassembler prints of them."""
    tool = run(oracle, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    tool += "/nvidia/cu13/bin/tileirdisasm"
    number, found = 0, list[str]()
    for version in VERSIONS:
        for script in (ROOT / "examples/cutile/export.py", HERE / "kernels.py"):
            folder = Path(scratch, f"{version}-{script.stem}")
            run(oracle, str(script), version, str(folder))
            for file in sorted(folder.glob("*.tileirbc")):
                text = run(tool, "-g", str(file))
                (function,) = read_bytecode(file.name, file.read_bytes()).functions
                walk = compare(function, text)
                number += walk.operations
                found += [f"{version} {file.stem}: {said}" for said in walk.found]
    sys.stdout.write(f"{number:,} operations of kernels as the disassembler reads them\n")
    return found


NAMES = {
    "matmul": "a b c",
    "matmul_persistent": "a b c",
    "matmul_bias_silu": "a b bias c",
    "attention_forward": "q k v o scale",
    "attention_backward": "q k v do lse delta dk dv scale weight",
    "attention_backward_dq": "q k v do lse delta dq scale weight",
    "layer_norm": "x weight bias y width epsilon",
    "softmax": "x y",
}


def from_python(oracle: str, _: str) -> list[str]:
    """Differences between the parameters of kernels read from Python and the user's own."""
    lines = run(oracle, str(HERE / "from_python.py")).splitlines()
    found = [line.partition(" ")[::2] for line in lines]
    sys.stdout.write(f"{len(found)} kernels straight from Python\n")
    wrong = [f"{name}: {said}" for name, said in found if NAMES.get(name) != said]
    return wrong + [f"{name}: not read" for name in sorted(set(NAMES) - {n for n, _ in found})]


def main(oracle: str) -> int:
    """Compare them all; 0 if there is no difference."""
    found: list[str] = []
    for part in (operations, kernels, from_python):
        with tempfile.TemporaryDirectory() as scratch:
            found += part(str(Path(oracle).absolute()), scratch)
    for said in found:
        sys.stderr.write(f"{said}\n")
    sys.stdout.write(f"{len(found)} differences\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
