"""A crash, kept: the IR as it was before the pass, and the pipeline that runs it again.

    builtin.module { ... }                                     the IR
    {-#                                                        MLIR's own form, so that mlir-opt
      external_resources: {                                    and its kin read it as well
        mlir_reproducer: {
          pipeline: "builtin.module(tileas-generate-schedule)",
          disable_threading: false,
          verify_each: true
        }
      }
    #-}

`stretto-opt --run-reproducer FILE` runs it. A file may come from anywhere and name any pass, such
as xDSL's `mlir-opt`, which starts the program that its options name: only `HARMLESS` ones are run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from stretto.errors import DocumentError
from stretto.files import STDIN
from stretto.ir.universe import STRETTO

DEFAULT_NAME = "stretto-opt-reproducer.mlir"
"""In the current folder, unless the user says where."""

HARMLESS = frozenset(STRETTO.all_passes) | {
    "arith-add-fastmath",
    "canonicalize",
    "control-flow-hoist",
    "convert-arith-to-varith",
    "convert-linalg-to-loops",
    "convert-scf-to-cf",
    "convert-varith-to-arith",
    "cse",
    "dce",
    "function-persist-arg-names",
    "licm",
    "linalg-fuse-multiply-add",
    "linalg-generalize-named-ops",
    "loop-hoist-memref",
    "lower-affine",
    "reconcile-unrealized-casts",
    "scf-for-loop-flatten",
    "scf-for-loop-range-folding",
    "scf-parallel-loop-tiling",
    "shape-inference",
    "varith-fuse-repeated-operands",
}
"""Passes that start no process, touch no file and run no other pass: each was read for that."""

_BEGIN, _END = "{-#", "#-}"
_PIPELINE = re.compile(r'\bpipeline\s*:\s*("(?:[^"\\]|\\.)*")')
_VERIFY_EACH = re.compile(r"\bverify_each\s*:\s*(true|false)")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run a reproducer."""

    pipeline: str
    verify_each: bool


def write(ir: str, recipe: Recipe, reason: str) -> str:
    """The text of a reproducer; `reason` stands above it as a comment."""
    head = "".join(f"// {line}\n" for line in reason.splitlines())
    return (
        f"{head}// Run it again: stretto-opt --run-reproducer FILE\n{ir.rstrip()}\n\n"
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {json.dumps(recipe.pipeline)},\n"
        "      disable_threading: false,\n"
        f"      verify_each: {str(recipe.verify_each).lower()}\n"
        "    }\n  }\n#-}\n"
    )


def read(text: str, file: str = STDIN) -> tuple[str, Recipe | None]:
    """The text with the recipe blanked out, positions kept, and the recipe if there is one."""
    begin, end = _trailer(text)
    trailer = text[begin:end]
    if "mlir_reproducer" not in trailer:
        return text, None
    rest = text[:begin] + re.sub(r"[^\n]", " ", trailer) + text[end:]
    pipeline = _PIPELINE.search(trailer)
    if pipeline is None:
        return rest, None
    try:
        passes = json.loads(pipeline[1])
    except ValueError as error:
        raise DocumentError(file, "", f"its pipeline is no string: {error}") from None
    each = _VERIFY_EACH.search(trailer)
    return rest, Recipe(passes, each is None or each[1] == "true")


def _trailer(text: str) -> tuple[int, int]:
    """Where the resources of a text stand: from the first that opens to the last close."""
    begin = 0 if text.startswith(_BEGIN) else text.find("\n" + _BEGIN) + 1
    end = text.rfind(_END)
    opens = text.startswith(_BEGIN, begin)
    return (begin, end + len(_END)) if opens and end >= begin + len(_BEGIN) else (0, 0)
