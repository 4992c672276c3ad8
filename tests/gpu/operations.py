"""Rows of operations, compiled: `python operations.py PYTHON` (`make test-gpu`).

    math.tanh   f -> f   libdevice.tanh({f0})   ──►   a Gluon kernel that Triton compiles

Every expression that a row states is compiled, some to a kernel, by Triton without a GPU.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path

from stretto.emission.gluon.expressions import DTYPES, expression
from stretto.kernel import Operation, Scalar, Value
from stretto.ops.operations import OPERATIONS
from stretto.ops.predicates import PREDICATES
from stretto.ops.rows import reason_of

TOGETHER = 12
"""Operations to a kernel."""
WORKERS = 2
SAMPLES = {"f": "f32", "g": "f64", "i": "i32", "j": "i64", "c": "i1", "x": "f32", "y": "i32"}
TRITON = {"f16": "*fp16", "f32": "*fp32", "f64": "*fp64", "i1": "*i8", "i32": "*i32", "i64": "*i64"}
HEAD = """
import triton
from triton import language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra import libdevice
"""
COMPILE = """
import importlib.util, json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon._runtime import GluonASTSource
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
source = GluonASTSource(fn=module.kernel, signature=json.loads(sys.argv[2]), constexprs={})
triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
"""


def operations() -> Iterator[Operation]:
    """One of each row that Gluon has, of usual types; functions of few bits too."""
    for row in OPERATIONS.values():
        if not row.elementwise or reason_of(row.gluon) is not None:
            continue
        letters = [one for one in row.types.partition(";")[0].split() if one != "->"]
        types = [SAMPLES.get(one, one) for one in letters]
        if "narrower" in row.types:
            types.reverse()
        for predicate in PREDICATES.get(row.name, {"": None}):
            yield _operation(row.name, types, predicate)
        if "{f0}" in row.gluon:
            yield _operation(row.name, ["f16" if one == "f32" else one for one in types], "")


def _operation(name: str, types: Sequence[str], predicate: str) -> Operation:
    values = [Value(Scalar(type)) for type in types]
    return Operation(
        name, tuple(values[:-1]), (values[-1],), {"predicate": predicate} if predicate else {}
    )


def kernel(some: Sequence[Operation]) -> tuple[str, dict[str, str]]:
    """A kernel that computes all of some operations, and its signature."""
    lines: list[str] = []
    signature: dict[str, str] = {}
    for n, operation in enumerate(some):
        names = [f"x{n}_{i}" for i in range(len(operation.operands))]
        for name, value in zip(names, operation.operands, strict=True):
            type = str(value.type)
            signature[f"{name}_ptr"] = TRITON[type]
            lines.append(f"{name} = gl.load({name}_ptr + at).to({DTYPES[type]})")
        made = str(operation.result.type)
        signature[f"y{n}_ptr"] = TRITON[made]
        stored = "gl.int8" if made == "i1" else DTYPES[made]
        lines.append(f"gl.store(y{n}_ptr + at, ({expression(operation, names)}).to({stored}))")
    head = f"{HEAD}\n\n@gluon.jit\ndef kernel({', '.join(signature)}):\n"
    place = "    at = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))\n"
    return head + place + "".join(f"    {line}\n" for line in lines), signature


def compiled(folder: Path, python: str, number: int, some: Sequence[Operation]) -> str:
    """What went wrong; nothing if all went well."""
    text, signature = kernel(some)
    file = folder / f"operations{number}.py"
    file.write_text(text, encoding="utf-8")
    command = [python, "-c", COMPILE, str(file), json.dumps(signature)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if not done.returncode:
        return ""
    if len(some) == 1:
        return f"{some[0].name} {some[0].attributes}: {done.stderr[-400:]}"
    alone = (compiled(folder, python, 1000 * number + n, [one]) for n, one in enumerate(some))
    return "\n".join(filter(None, alone))


def main(python: str) -> int:
    """How many kernels failed."""
    begun = time.monotonic()
    every = list(operations())
    parts = [every[i : i + TOGETHER] for i in range(0, len(every), TOGETHER)]
    with tempfile.TemporaryDirectory() as made, ThreadPool(WORKERS) as pool:
        jobs = [(Path(made), python, n, part) for n, part in enumerate(parts)]
        failures = [text for text in pool.starmap(compiled, jobs) if text]
    print("\n".join(failures))
    print(
        f"{len(every)} operations, {len(failures)} kernels failed, {time.monotonic() - begun:.0f} s"
    )
    return len(failures)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
