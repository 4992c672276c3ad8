"""Run by the oracle's own Python: read each text of a folder with upstream MLIR, print it again.

IN/gemm.mlir  ──►  upstream parser and verifier  ──►  OUT/gemm.mlir
"""

# The project's own environment does not have jaxlib.
# pyright: basic, reportMissingImports=false

import sys
from pathlib import Path

from jaxlib.mlir import ir

source, target = Path(sys.argv[1]), Path(sys.argv[2])
failed = 0
for file in sorted(source.glob("*.mlir")):
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(file.read_text(encoding="utf-8"))
            module.operation.verify()
        except (ir.MLIRError, ValueError) as error:
            sys.stderr.write(f"{file.name}: {error}\n")
            failed += 1
            continue
        printed = module.operation.get_asm(print_generic_op_form=True)
        (target / file.name).write_text(printed + "\n", encoding="utf-8")
sys.exit(1 if failed else 0)
