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

`stretto-opt --run-reproducer FILE` runs it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

DEFAULT_NAME = "stretto-opt-reproducer.mlir"
"""In the current folder, unless the user says where."""

_TRAILER = re.compile(r"^\{-#.*#-\}", re.DOTALL | re.MULTILINE)
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


def read(text: str) -> tuple[str, Recipe | None]:
    """The text with the recipe blanked out, positions kept, and the recipe if there is one."""
    trailer = _TRAILER.search(text)
    if trailer is None or "mlir_reproducer" not in trailer[0]:
        return text, None
    blank = re.sub(r"[^\n]", " ", trailer[0])
    rest = text[: trailer.start()] + blank + text[trailer.end() :]
    pipeline = _PIPELINE.search(trailer[0])
    if pipeline is None:
        return rest, None
    each = _VERIFY_EACH.search(trailer[0])
    return rest, Recipe(json.loads(pipeline[1]), each is None or each[1] == "true")
