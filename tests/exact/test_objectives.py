"""An objective is one file: what is there, in what order, and that one more file is one more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import stretto
from stretto.exact import objectives
from stretto.exact.goal import Goal
from stretto.exact.objectives import GOALS, NAMES, goal_of, up_to

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = ("ii", "stages", "bytes", "registers")

STARTS = '''
"""Everything as early as can be."""

from stretto.exact.goal import Goal


def _expression(model, most):
    from stretto.exact.cp import total

    return total(model.start) - len(model.start) * model.origin


def _value(case, schedule):
    starts = schedule.starts.values()
    return sum(starts) - len(starts) * min(starts)


GOAL = Goal(
    name="starts",
    rank=25,
    unit=("cycle of delay", "cycles of delay"),
    value=_value,
    floor=lambda case, ii: 0,
    expression=_expression,
)
'''


def test_one_file_each() -> None:
    files = {path.stem for path in Path(*objectives.__path__).glob("*.py")} - {"__init__"}
    assert files == set(NAMES)
    assert len({goal.rank for goal in GOALS}) == len(GOALS)


def test_the_order() -> None:
    assert tuple(name for name in NAMES if name in ORDER) == ORDER
    assert up_to("bytes") == GOALS[: NAMES.index("bytes") + 1]
    assert up_to("ii") == (goal_of("ii"),)


def test_a_value_with_its_unit() -> None:
    assert [goal_of("stages").count(n) for n in (1, 2)] == ["1 stage", "2 stages"]
    assert goal_of("bytes").count(73_728) == "73,728 bytes"
    assert goal_of("registers").count(0) == "0 registers"


def test_naming_objectives_loads_nothing_heavy() -> None:
    code = (
        "import sys, stretto.exact.objectives\n"
        "heavy = {m.split('.')[0] for m in sys.modules} & {'numpy', 'ortools', 'pandas'}\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_goal_says_by_default_is_safe() -> None:
    """Later stages are looked at unless there is an argument against it."""
    ii = goal_of("ii")
    goal = Goal(
        name="x",
        rank=99,
        unit=("x", "x"),
        value=ii.value,
        floor=ii.floor,
        expression=ii.expression,
    )
    assert goal.late
    assert not goal.counts_stages
    assert [g.name for g in GOALS if g.counts_stages] == ["stages"]


def test_a_new_file_is_a_new_objective(tmp_path: Path) -> None:
    """In a copy of the sources: the command line, the search and the reports know it."""
    package = tmp_path / "stretto"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(*stretto.__path__), package, ignore=unwanted)
    (package / "exact" / "objectives" / "starts.py").write_text(STARTS)

    def run(*arguments: str) -> str:
        code = "import sys; from stretto.cli.main import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "schedule", *arguments]
        env = os.environ | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    asked = (str(EXAMPLES / "gemm.json"), "--prove", "--objective", "starts")
    (entry,) = json.loads(run(*asked, "--json"))["loops"]
    rows = entry["proof"]["objectives"]
    assert [row["name"] for row in rows] == ["ii", "stages", "bytes", "starts"]
    assert all(row["optimal"] for row in rows)
    starts = [op["start"] for op in entry["ops"]]
    assert rows[-1]["value"] == sum(starts) - len(starts) * min(starts) > 0
    assert f"{rows[-1]['value']:,} cycles of delay proved fewest" in " ".join(run(*asked).split())
    assert "in the order ii, stages, bytes, starts, registers as" in " ".join(
        run("--help-all").split()
    )
