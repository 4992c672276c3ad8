"""Arguments of wrong kinds: each public function refuses them in words of ours, or takes them."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import islice
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.kinds import require

EXAMPLES = Path(__file__).parents[1] / "examples"
(LOOP,) = stretto.read(EXAMPLES / "four_op.json")
FOUND = stretto.schedule(LOOP)
KERNEL = EXAMPLES / "triton" / "softmax.ttir"

WRONG: tuple[Any, ...] = (
    None, True, 1.5, nan, inf, 10**30, -1, 0, [], [None], ["x"], [0], b"x", "", "x", {}, {"x": 1},
    {1: 2}, (), (1, 2, 3, 4, 5), EXAMPLES, object(), "\0", "\ud800", "a\nb", [[]], [-1], [10**30],
)  # fmt: skip
GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "schedule": ((LOOP,), {}),
    "assign": ((LOOP, "b200"), {}),
    "bounds": ((LOOP,), {}),
    "explain": ((LOOP,), {}),
    "verify": ((LOOP, FOUND), {}),
    "materialize": ((LOOP, FOUND), {}),
    "simulate": ((LOOP, FOUND), {}),
    "compare": ((FOUND, FOUND), {}),
    "read": ((EXAMPLES / "four_op.json",), {}),
    "write": ((LOOP, "-", "json"), {}),
    "convert": ((LOOP, "-"), {"format": "json"}),
    "import_kernel": ((KERNEL,), {}),
    "simulate_kernel": ((KERNEL,), {"inputs": {}, "grid": (1,)}),
    "emit": ((KERNEL,), {}),
    "predict": ((KERNEL,), {"grid": (4,)}),
    "rank": (([(KERNEL, (4,))],), {"depths": (2,)}),
    "build": (("loop",), {}),
    "generate_loops": ((1,), {}),
    "load_machine": (("h200",), {}),
    "prepare": ((LOOP,), {}),
}
MANY = {"batch", "bench", "sweep"}
"""They start processes: of them a few options are tried, below."""
NOT_CALLED_SO = {"machine_names", "register_generator"}


def test_every_function_is_tried() -> None:
    functions = {name for name in stretto.__all__ if inspect.isfunction(getattr(stretto, name))}
    assert functions == {*GIVEN} | MANY | NOT_CALLED_SO


@pytest.mark.parametrize("name", GIVEN)
def test_no_argument_ends_in_an_error_of_python(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever raises anything but a StrettoError fails here."""
    monkeypatch.chdir(tmp_path)
    function: Callable[..., Any] = getattr(stretto, name)
    args, options = GIVEN[name]
    parameters = inspect.signature(function).parameters
    for number, parameter in enumerate(parameters):
        for wrong in WRONG:
            given, named = list(args), dict(options)
            if number < len(given):
                given[number] = wrong
            else:
                named[parameter] = wrong
            try:
                with redirect_stdout(io.StringIO()):
                    found = function(*given, **named)
                    list(islice(found, 2) if inspect.isgenerator(found) else ())
            except stretto.StrettoError:
                continue


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("schedule", {"max_ii": "9"}, "max_ii is '9'; a whole number or None is expected"),
    ("schedule", {"time_limit": "5"}, "time_limit is '5'; a number or Deadline or None is"),
    ("schedule", {"max_stages": 1.5}, "max_stages is 1.5; a whole number or None is expected"),
    ("schedule", {"max_stages": True}, "max_stages is True; a whole number or None is expected"),
    ("schedule", {"max_ii": 1 << 60}, "max_ii is 1152921504606846976; at most 9,007,199,254,740"),
    ("schedule", {"without": "rau"}, "without is 'rau'; a list of texts is expected"),
    ("schedule", {"pins": [1]}, r"pins is \[1\]; a list of texts is expected"),
    ("schedule", {"prove": 1}, "prove is 1; True or False is expected"),
    ("schedule", {"progress": 1}, "progress is 1; a function or None is expected"),
    ("emit", {"consumers": "1"}, "consumers is '1'; a whole number or None is expected"),
    ("emit", {"agents": {"k": 1}}, "agents is {'k': 1}; a dict of texts to texts or None is"),
    ("emit", {"mode": "fast"}, "mode 'fast'; known: specialized, unspecialized"),
    ("predict", {"grid": 0}, "grid is 0; a list of whole numbers is expected"),
    ("predict", {"grid": "4"}, "grid is '4'; a list of whole numbers is expected"),
    ("predict", {"grid": ()}, r"grid is \(\); one to three axes of at least 1 block"),
    ("predict", {"grid": (1, 2, 3, 4)}, "one to three axes of at least 1 block"),
    ("predict", {"grid": (-1,)}, "one to three axes of at least 1 block"),
    ("rank", {"problems": "x.mlir"}, r"problems is 'x.mlir'; a list of tuples \("),
    ("rank", {"problems": 3}, r"problems is 3; a list of tuples \("),
    ("rank", {"keep": 0}, "keep is 0; at least 1 is needed"),
    ("rank", {"names": ("a", "b")}, "1 kernel and 2 names"),
]


@pytest.mark.parametrize(("name", "options", "told"), REFUSED)
def test_what_is_expected_is_told(name: str, options: dict[str, Any], told: str) -> None:
    args, others = GIVEN[name]
    if "problems" in options:
        args = ()
    with pytest.raises(stretto.StrettoError, match=told):
        getattr(stretto, name)(*args, **{**others, **options})


def test_numbers_of_numpy_and_other_lists_are_taken() -> None:
    asked: dict[str, Any] = {"max_stages": np.int64(3), "time_limit": np.float32(9)}
    assert stretto.schedule(LOOP, pins=iter(()), **asked).ii == FOUND.ii
    kinds: dict[str, Any] = {"grid": np.array([4, 2]), "arguments": {"n": 1.5, "x": (3, 4)}}
    require(stretto.predict, (KERNEL,), kinds)


def test_options_of_many_are_checked_before_anything_runs() -> None:
    with pytest.raises(stretto.StrettoError, match="max_ii is '9'; a whole number or None"):
        next(stretto.batch([LOOP], max_ii="9"))
    with pytest.raises(stretto.StrettoError, match="a machine is wanted, and int is given"):
        next(stretto.batch([LOOP], machine=3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(stretto.StrettoError, match=r"repeat is 1\.5; a whole number is expected"):
        stretto.bench([LOOP], repeat=1.5)  # pyright: ignore[reportArgumentType]
    wrong: Any
    for wrong in (3, (), b"x", None):
        with pytest.raises(stretto.StrettoError, match="a function, a loop, a kernel or the path"):
            stretto.sweep(wrong)


@pytest.mark.parametrize("function", [stretto.read, stretto.emit, stretto.sweep])
def test_source_in_place_of_a_path_is_not_printed_back(function: Callable[..., object]) -> None:
    text = KERNEL.read_text(encoding="utf-8")
    with pytest.raises(stretto.StrettoError, match="the path of a file is wanted, and a") as error:
        function(text)
    assert len(str(error.value)) < 300


def test_a_script_without_a_guard_is_told_what_to_add(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import stretto\n"
        f"stretto.sweep({str(EXAMPLES / 'gemm.json')!r}, max_stages=(1, 2), cache=False)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("stretto.errors.StrettoError: a worker process ended before it began")
    assert 'under `if __name__ == "__main__":`' in last
    assert "RuntimeError" not in done.stderr
