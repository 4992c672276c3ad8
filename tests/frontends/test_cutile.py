"""cuTile kernels, from their bytecode to kernels, loops and schedules; run against NumPy."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_tileir import mutated

import stretto
import stretto.cutile
from cutile_cases import CASES, normal
from kernel_numpy import rounded, run
from stretto.api.kernels import KernelMode
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.extraction.kernels import kernel_loops
from stretto.frontends.cutile import read_cutile
from stretto.ir import write_kernels
from stretto.ir.kernels.writing import lowered_module
from stretto.ir.loops import read_loops
from stretto.ir.parsing import Parsed, verify_module
from stretto.kernel import Kernel, KernelError, Operation, Region, Scalar, Value
from stretto.kernel.configuration import DEFAULT
from stretto.machine import load_machine

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/cutile").glob("*.tileirbc"))
OTHERS = sorted(
    file
    for file in (ROOT / "tests/tileir").glob("[a-z]*.tileirbc")
    if not file.stem.startswith("telling")  # it prints, which is refused
)
MUTATIONS = 5000 if os.environ.get("STRETTO_HYPOTHESIS") == "deep" else 600


def kernel_of(file: Path) -> Kernel:
    (kernel,) = read_cutile(str(file.relative_to(ROOT)), file.read_bytes())
    return kernel


def example(name: str) -> Kernel:
    return kernel_of(ROOT / f"examples/cutile/{name}.tileirbc")


def other(name: str) -> Kernel:
    return kernel_of(ROOT / f"tests/tileir/{name}-13.4.tileirbc")


def named(kernel: Kernel, name: str) -> list[Operation]:
    return [op for op in kernel.walk() if op.name == name]


def unseen(region: Region, seen: set[Value]) -> Iterator[Operation]:
    """Operations that take a value which is not made before them, where they can see it."""
    seen = seen | set(region.arguments)
    for operation in region.operations:
        if not set(operation.operands) <= seen:
            yield operation
        for inner in operation.regions:
            yield from unseen(inner, seen)
        seen |= set(operation.results)


@pytest.mark.parametrize("file", [*EXAMPLES, *OTHERS], ids=lambda file: file.stem)
def test_every_value_is_made_before_it_is_taken(file: Path) -> None:
    kernel = kernel_of(file)
    assert list(unseen(kernel.body, {parameter.value for parameter in kernel.parameters})) == []


# Against NumPy.


@pytest.mark.parametrize("name", CASES)
def test_an_example_computes_what_numpy_does(name: str) -> None:
    case = CASES[name]()
    run(example(name), case.grid, *case.arguments)
    for number, wanted in case.expected.items():
        np.testing.assert_allclose(case.arguments[number], wanted, rtol=0, atol=case.tolerance)


@pytest.mark.parametrize(
    ("machine", "mode"), [("b200-pipes", "unspecialized"), ("blackwell", "specialized")]
)
@pytest.mark.parametrize("name", CASES)
def test_an_example_that_is_lowered_and_pipelined_still_does(
    name: str, machine: str, mode: KernelMode
) -> None:
    case = CASES[name]()
    inputs = {f"arg{number}": value for number, value in enumerate(case.arguments)}
    file = ROOT / f"examples/cutile/{name}.tileirbc"
    found = stretto.simulate_kernel(file, inputs, case.grid, machine, mode=mode)
    assert found.success, found.to_text()
    for number, wanted in case.expected.items():
        np.testing.assert_allclose(
            found.arrays[f"arg{number}"], wanted, rtol=0, atol=case.tolerance
        )


def test_ways_out_of_loops_are_taken() -> None:
    x = normal(12, 32).astype(np.float32)
    x[5] = 7.0
    total, done = np.zeros(32, np.float32), 0
    while done < 9:
        if done % 3 == 1:
            done += 2
            continue
        if x[done].sum() > 100:
            break
        for inner in range(0, done, 2):
            total = total + x[done] if inner > 7 else total - x[done]
        done += 1
    y = np.zeros(32 * 12, np.float32)
    run(other("loops"), (1,), x.reshape(-1), y, 9)
    # The second loop of the kernel writes 0 ... 8 over the first nine tiles.
    np.testing.assert_array_equal(y.reshape(12, 32)[:9, 0], np.arange(9))
    y = np.zeros(32 * 12, np.float32)
    only = other("loops")
    first = [op.name for op in only.body.operations].index("tile.view_store")
    body = Region((*only.body.operations[: first + 1], only.body.terminator))
    run(Kernel(only.name, only.parameters, body, only.location), (1,), x.reshape(-1), y, 9)
    np.testing.assert_allclose(y[:32], total, rtol=1e-6)


def test_a_block_that_returns_early_writes_nothing() -> None:
    x, y = normal(4 * 32).astype(np.float32), np.zeros(4 * 32, np.float32)
    run(other("early"), (4,), x, y, 3)
    np.testing.assert_allclose(y[:96], 2 * x[:96])
    assert not y[96:].any()


def test_gathers_scatters_and_atomics_stay_inside() -> None:
    x, y = normal(100).astype(np.float32), np.zeros(150, np.float32)
    flags = np.arange(120, dtype=np.int32)
    run(other("memory"), (1,), x, y, flags)
    where = np.arange(64) * 3
    got = np.where(where < 100, x[np.minimum(where, 99)], 0)
    wanted = np.zeros(150, np.float32)
    wanted[(where + 1)[where + 1 < 150]] = got[where + 1 < 150]
    np.testing.assert_array_equal(y, wanted)
    assert (flags[where[where < 120]] == 7).all()
    assert (np.delete(flags, where[where < 120]) % 3 != 0).all()


def test_tiles_are_cut_joined_turned_reduced_and_scanned() -> None:
    x, y = np.abs(normal(16, 16)).astype(np.float32), np.zeros((16, 16), np.float32)
    run(other("shapes"), (1,), x, y)
    e = np.cumsum(x.T, 1) + np.cumsum(x.T[::-1], 0)[::-1]
    g = e.min(0, keepdims=True) + e.prod(1, keepdims=True)
    wanted = np.where(g > 0.5, e, e.argmax(1)[:, None])
    np.testing.assert_allclose(y, wanted, rtol=1e-4)


def test_integer_products_go_in_a_batch_through_a_turned_view() -> None:
    a, b = (np.arange(2 * 32 * 32).reshape(2, 32, 32) % n for n in (11, 7))
    c = np.zeros((2, 32, 32), np.int32)
    kernel = other("products")
    run(kernel, (1,), a.astype(np.int8), b.astype(np.int8), c)
    np.testing.assert_array_equal(c, a @ b.transpose(0, 2, 1))
    (turned,) = named(kernel, "tile.transpose")
    assert turned.integers("order") == (0, 2, 1)


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3", "13.4"])
def test_arithmetic_is_that_of_numpy_in_every_version(version: str) -> None:
    kernel = kernel_of(ROOT / f"tests/tileir/numbers-{version}.tileirbc")
    a = np.linspace(1, 1.02, 128, dtype=np.float32)
    b = np.exp(a) + np.log(a) - np.sqrt(a) * (1 / np.sqrt(a)) / np.tanh(a)
    c = np.sin(b) + np.cos(b) + np.tan(b) + np.floor(b) + np.ceil(b) + np.exp2(b) + np.log2(b)
    c = np.power(c, a) + np.sinh(a) + np.cosh(a) + np.abs(a)
    d = rounded(c.astype(np.float16), Scalar("bf16"))
    for i in (np.arange(1, 129, dtype=np.int32), np.full(128, 3, np.int32)):
        y, flags = np.zeros(128, np.float32), i.copy()
        run(kernel, (1,), a, y, flags)
        j = (i << 3 | i >> 2) ^ ~i & -i
        j = j // 5 + j % 7 + -(-j // 3) + np.minimum(i, j) + np.maximum(i, 4)
        k = j.astype(np.int64).astype(np.int8).astype(np.uint16)
        e = np.where(i == 3, d, j.view(np.float32)) + k.astype(np.float32)
        known = np.isfinite(e)
        np.testing.assert_allclose(y, np.where(known, np.minimum(e, 3.25), 0), rtol=1e-2)
        np.testing.assert_allclose(flags[known], e[known].astype(np.int32), rtol=1e-2)


# As trees.


def test_assumptions_about_parameters_are_promises_of_theirs() -> None:
    kernel = example("matmul")
    address, rows, columns, stride, inner = kernel.parameters[:5]
    assert [p.divisibility for p in (address, rows, columns, stride, inner)] == [16, 16, 16, 16, 1]
    assert (rows.lower, rows.upper, address.lower) == (0, None, None)
    assert not named(kernel, "tile.hint")


def test_coordinates_that_do_not_change_are_computed_before_the_loop() -> None:
    kernel = example("matmul")
    (loop,) = named(kernel, "scf.for")
    names = [op.name for op in loop.regions[0].operations]
    assert names == ["arith.muli", "tile.view_load", "tile.view_load", "tile.dot", "scf.yield"]


def test_the_hints_of_the_kernel_and_of_its_loads_are_kept() -> None:
    kernel = kernel_of(ROOT / "tests/tileir/memory-13.4.tileirbc")
    assert kernel.warps is None
    assert {op.text("semantics") for op in named(kernel, "tile.atomic_rmw")} == {"acq_rel"}


@pytest.mark.parametrize(
    ("version", "name", "hint"),
    [("13.1", "get_global", "hand it in as a parameter"), ("13.4", "print_tko", "take it out")],
)
def test_what_cannot_be_lowered_is_told_at_its_place_in_the_source(
    version: str, name: str, hint: str
) -> None:
    with pytest.raises(KernelError) as caught:
        kernel_of(ROOT / f"tests/tileir/telling-{version}.tileirbc")
    place = "tests/cutile/kernels.py:107:5"
    assert str(caught.value) == f"{place}: error: `{name}` cannot be lowered; {hint}"


def test_without_cutile_python_kernels_are_refused_with_what_to_do() -> None:
    with pytest.raises(StrettoError, match=r"cuTile is not installed; pip install cuda-tile, or"):
        stretto.cutile.read(len, [])


# As loops.


@pytest.mark.parametrize("machine", ["b200-pipes", "blackwell"])
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_have_loops_on_both_machines(file: Path, machine: str) -> None:
    loops = stretto.read(file, machine).loops
    assert loops
    text, _ = write_kernels((kernel_of(file),), load_machine(machine), DEFAULT)
    assert f"func.func @{file.stem}(" in text
    again, _ = kernel_loops(str(file), (kernel_of(file),), load_machine(machine), DEFAULT)
    assert [loop.name for loop in again] == [loop.name for loop in loops]


def test_attention_gets_the_interval_of_the_example_that_is_written_by_hand() -> None:
    file = ROOT / "examples/cutile/attention_forward_d128.tileirbc"
    (loop,) = stretto.read(file, "b200-pipes").loops
    assert stretto.schedule(loop, "b200-pipes").ii == 1325


def test_every_command_takes_bytecode(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(ROOT / "examples/cutile/matmul.tileirbc")
    for command in ("bounds", "schedule", "explain", "simulate", "import"):
        assert main([command, file, "--machine", "b200-pipes"]) == 0
        assert "matmul" in capsys.readouterr().out


def test_no_mutation_ends_in_a_traceback() -> None:
    chance = random.Random(14)
    machine = load_machine("b200-pipes")
    files = [file.read_bytes() for file in (*EXAMPLES, *OTHERS)]
    translated = 0
    for turn in range(MUTATIONS):
        data = bytearray(chance.choice(files))
        if turn % 3 == 0:
            data = bytearray(mutated(bytes(data), chance))
        for _ in range(chance.choice([1, 1, 2, 3])):
            at = chance.randrange(12, len(data))
            data[at] = max(0, min(255, data[at] + chance.choice([-3, -2, -1, 1, 2, 3])))
        try:
            kernels = read_cutile("k.tileirbc", bytes(data))
            module, _ = lowered_module(kernels, machine)
            parsed = Parsed.of_module(module, "k.tileirbc")
            if not verify_module(parsed):
                read_loops(parsed, machine)
            translated += len(kernels)
        except StrettoError:
            continue
    assert translated > MUTATIONS // 20
