"""Run by the oracle's own Python: a kernel straight from its source, with the user's own names.

export.py's kernels ──► stretto.cutile.read ──► "matmul a b c", "attention_forward q k v o scale", …
"""

# The project's own environment does not have cuda-tile.
# pyright: basic, reportMissingImports=false

import sys

sys.path[:0] = ["src", "examples/cutile"]

from export import KERNELS, load  # noqa: E402

import stretto.cutile  # noqa: E402

for file, parameters in KERNELS.values():
    kernel = stretto.cutile.read(load(file), parameters)
    names = dict.fromkeys(parameter.name for parameter in kernel.parameters)
    sys.stdout.write(" ".join((kernel.name, *names)) + "\n")
