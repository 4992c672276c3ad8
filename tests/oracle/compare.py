"""Does an independent MLIR parser read our generic form, and do we read what it prints?

    our text ──► generic form ──► upstream MLIR ──► its generic form ──► the same module

Usage: compare.py ORACLE_PYTHON. Texts: the shipped examples, every test input of the dialect, and
loops that hypothesis makes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from generated import Problem, problems  # noqa: E402
from stretto.ir import write_mlir  # noqa: E402
from stretto.ir.loops.writer import print_module  # noqa: E402
from stretto.ir.parsing import parse_module  # noqa: E402
from stretto.loop import Loop  # noqa: E402

GENERATED = 200
SEPARATOR = "// -----"


def texts() -> dict[str, str]:
    """Every text to try, by name: chunks of split files one by one."""
    files = [*(ROOT / "examples").glob("*.mlir"), *(ROOT / "tests/lit/dialect").glob("*.mlir")]
    found: dict[str, str] = {}
    for file in sorted(files):
        if "errors" in file.stem:
            continue
        for number, part in enumerate(file.read_text(encoding="utf-8").split(SEPARATOR)):
            found[f"{file.stem}.{number}"] = part
    loops: list[Loop] = []

    @settings(
        max_examples=GENERATED,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(problems())
    def collect(problem: Problem) -> None:
        loops.append(problem.loop)

    collect()
    for number, loop in enumerate(loops):
        found[f"generated.{number}"] = write_mlir(loop, generic=True)
    return found


def canonical(text: str, file: str) -> str:
    """A text in generic form without what upstream MLIR does not keep: names and key order."""
    module = parse_module(text, file).module
    for op in module.walk():
        for table in (op.attributes, op.properties):
            ordered = {key: in_order(table[key]) for key in sorted(table)}
            table.clear()
            table.update(ordered)
        arguments = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *arguments):
            value.name_hint = None
    return print_module(module, generic=True)


def in_order(attribute: Attribute) -> Attribute:
    """The same attribute with the keys of every dictionary sorted."""
    if isinstance(attribute, DictionaryAttr):
        table = attribute.data
        return DictionaryAttr({key: in_order(table[key]) for key in sorted(table)})
    if isa(attribute, ArrayAttr):
        return ArrayAttr([in_order(item) for item in attribute.data])
    return attribute


def main(oracle: str) -> int:
    """Compare them all; 0 if every text is read and comes back the same."""
    ours = texts()
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch, "in"), Path(scratch, "out")
        source.mkdir()
        target.mkdir()
        for name, text in ours.items():
            generic = print_module(parse_module(text, name).module, generic=True)
            (source / f"{name}.mlir").write_text(generic, encoding="utf-8")
        script = Path(__file__).with_name("parse_generic.py")
        ran = subprocess.run([oracle, str(script), str(source), str(target)], check=False)
        theirs = {file.stem: file.read_text(encoding="utf-8") for file in target.glob("*.mlir")}
    different = [n for n, t in theirs.items() if canonical(t, n) != canonical(ours[n], n)]
    for name in sorted(different):
        sys.stderr.write(f"{name}: not the same after upstream MLIR\n")
    told = f"{len(theirs)} of {len(ours)} texts read by upstream MLIR"
    sys.stdout.write(f"{told}, {len(different)} of them not the same afterwards\n")
    return 1 if ran.returncode or different or len(theirs) != len(ours) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
