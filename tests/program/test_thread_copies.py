"""Copies by threads into rings: chosen where they may be, and then they bring what a load does.

The kernels of tests/ttir/copies/ run as they are written, as their programs, and as their source,
on arrays in which a wrong element would be seen: NaN behind every bound, and rows that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from gluon_cases import launched, near
from stretto.api.emitting import EmitMode, EmittedKernel, emit
from stretto.api.kernels import kernels_of
from stretto.api.read_write import read_input
from stretto.compile import loop_schedules
from stretto.compile.candidates import Emitter
from stretto.kernel import Kernel, pipeline
from stretto.kernel.configuration import Configuration
from stretto.kernel.tree import Lowered, kind_of
from stretto.machine import load_machine
from stretto.program import KernelProgram
from stretto.program.builder import loop_copies
from stretto.program.clocks import FaultError, check_program
from stretto.program.instructions import (
    CommitGroup,
    Fence,
    For,
    If,
    Instruction,
    Pipelined,
    Step,
    ThreadBarrier,
    ThreadCopy,
    WaitGroup,
)
from stretto.program.walk import walk
from stretto.simulation.kernels import run_kernel
from stretto.simulation.kernels.programs import run_program_of_kernel

Array = NDArray[Any]
Body = tuple[Instruction, ...]
COPIES = Path(__file__).parents[1] / "ttir" / "copies"
TAKEN = (
    "gathered", "pages", "bounded", "columns", "filled", "written", "rows_apart_by_8",
    "rows_apart_by_4",
)  # fmt: skip
LEFT = {
    "rows_apart_by_2": "of its addresses only multiples of 2 are known; a copy wants 4",
    "volatile": "the load is volatile",
    "ones": "where its mask is off it reads something else than zero",
    "written_beside": "its loop may change what it reads",
}
APART = {"rows_apart_by_8": 172, "rows_apart_by_4": 170, "rows_apart_by_2": 171}


@cache
def kernel(name: str) -> Kernel:
    (found,) = kernels_of(*read_input(str(COPIES / f"{name}.ttir")))
    return found


@cache
def emitted(name: str, mode: EmitMode = "specialized", depth: int | None = None) -> EmittedKernel:
    """Of one stage count, and with copies: any way has to be right."""
    with (
        patch.object(Emitter, "_stages", (4,)),
        patch.object(loop_schedules, "SOLVED_WORK", 0),
        patch.object(Emitter, "_loading", return_value=[]),
    ):
        return emit(COPIES / f"{name}.ttir", "h200", mode=mode, depth=depth)


def lowered(name: str, *, copies: bool = True) -> list[str]:
    made = pipeline.lower(kernel(name), load_machine("h200"), Configuration(copies=copies))
    return [kind_of(op) for op in made.kernel.walk()]


def inputs(name: str, rows: int = 70, depth: int = 160) -> dict[str, Any]:
    """Every row is another; what no mask lets through is no number."""
    rng = np.random.default_rng(len(name))
    stride = APART.get(name, depth + 16)
    many = 160
    a = np.full((many, stride), np.nan, np.float16)
    a[:, :depth] = rng.integers(-4, 5, (many, depth))
    s = np.full((many, stride), np.nan, np.float16)
    s[:rows, :depth] = rng.integers(1, 3, (rows, depth))
    listed = rng.permutation(many).astype(np.int32)
    if name == "pages":
        listed = rng.permutation(many // 16).astype(np.int32)
    if name == "bounded":
        listed = np.array([11, rows - 20], np.int32)
        a[11 + rows - 20 :] = np.nan
    elif name in ("filled", "volatile"):
        listed[0] = 0
        a[rows:] = np.nan
    elif name not in ("gathered", "columns", "pages"):
        a[rows:] = np.nan
    if name == "pages":
        listed = np.concatenate([listed, listed]).astype(np.int32)
    b = np.full((depth + 64, 64), np.nan, np.float16)
    b[:depth] = rng.integers(-4, 5, (depth, 64))
    return {
        "a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((rows, 64), np.float32), "list_ptr": listed,
        "s_ptr": s, "M": rows, "K": depth, "stride_a": stride,
    }  # fmt: skip


def by_loads(name: str, given: dict[str, Any]) -> Array:
    """What the kernel leaves with its addresses, loaded one after the other."""
    with patch.object(pipeline, "with_views_of_addresses", Lowered):
        made = pipeline.lower(kernel(name), load_machine("h200"), Configuration(copies=False))
    return run_kernel(made.kernel, given, (2,)).arrays["c_ptr"]


def wanted(name: str, given: dict[str, Any]) -> Array:
    """The same, of which something can be seen."""
    found = by_loads(name, given)
    assert found.any()
    assert np.isfinite(found).all()
    return found


@pytest.mark.parametrize("name", TAKEN)
def test_threads_copy_what_tma_cannot(name: str) -> None:
    assert lowered(name).count("async.pointer_copy") == 1
    assert "async.pointer_copy" not in lowered(name, copies=False)


@pytest.mark.parametrize("name", LEFT)
def test_what_threads_cannot_copy_they_load(name: str) -> None:
    assert "async.pointer_copy" not in lowered(name)
    notes = [told for _, told in pipeline.lower(kernel(name), load_machine("h200")).notes]
    assert any(told.endswith(LEFT[name]) for told in notes), notes


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, "unspecialized") for name in TAKEN), ("gathered", "specialized")],
)
def test_a_program_with_copies_leaves_what_its_kernel_does(name: str, mode: EmitMode) -> None:
    made = emitted(name, mode)
    every = [one for agent in made.emitted.program.agents for one in walk(agent.body)]
    assert any(isinstance(one, ThreadCopy) for one in every)
    assert made.overlap == ("agents" if mode == "specialized" else "copies")
    for depth in (0, 16, 64, 160, 640):
        if depth > 160 and name in APART:
            continue
        given = {**inputs(name, depth=depth or 160), "K": depth}
        found = run_program_of_kernel(made.emitted.program, given, (2,)).arrays["c_ptr"]
        assert np.array_equal(found, by_loads(name, given))
    assert wanted(name, inputs(name)).any()


@pytest.mark.parametrize("name", ["gathered", "filled"])
def test_the_source_leaves_what_its_kernel_does(name: str) -> None:
    """As the sanitizer runs it, which knows nothing of how it was made."""
    source, given = emitted(name).source, inputs(name)
    assert "async_copy.async_copy_global_to_shared(" in source
    near(launched(source, given, (2,)), {"c_ptr": wanted(name, given)}, 0)


@pytest.mark.parametrize("mode", ["specialized", "unspecialized"])
def test_a_tile_of_a_branch_is_waited_for_in_it(mode: EmitMode) -> None:
    """A block that returns at once has asked for nothing."""
    rng = np.random.default_rng(3)
    q, k = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((192, 64), (320, 64)))
    for blocks, steps in ((0, 2), (2, 0), (2, 5), (3, 1)):
        listed = np.array([blocks, *rng.permutation(320)], np.int32)
        given: dict[str, Any] = {"q_ptr": q, "k_ptr": k, "list_ptr": listed, "n": steps}
        given["o_ptr"] = np.full((192, 64), 7, np.float32)
        made = emitted("returned", mode).emitted.program
        found = run_program_of_kernel(made, given, (3,)).arrays["o_ptr"]
        wanted = np.full((192, 64), 7, np.float32)
        wanted[: 64 * blocks] = 0
        for i in range(steps):
            rows = k[listed[1 + 64 * i : 65 + 64 * i]].astype(np.float32)
            wanted[: 64 * blocks] += q[: 64 * blocks].astype(np.float32) @ rows.T
        assert np.array_equal(found, wanted)


def test_zero_times_what_lies_behind_a_bound_would_be_seen() -> None:
    given = inputs("bounded")
    assert np.isnan(given["a_ptr"][61:, :160]).all()
    given["list_ptr"] = np.array([11, 70], np.int32)
    assert np.isnan(by_loads("bounded", given)).any()


# Mutations ---------------------------------------------------------------------------------------


def without(body: Body, victim: Instruction, by: Body = ()) -> Body:
    """A body without an instruction, or with others in its place."""
    found: list[Instruction] = []
    for one in body:
        if one is victim:
            found += by
        elif isinstance(one, For | Step | Pipelined):
            found.append(replace(one, body=without(one.body, victim, by)))
        elif isinstance(one, If):
            other = None if one.otherwise is None else without(one.otherwise, victim, by)
            found.append(replace(one, body=without(one.body, victim, by), otherwise=other))
        else:
            found.append(one)
    return tuple(found)


def changed(
    program: KernelProgram, kind: type[Instruction], by: Callable[[Any], Body]
) -> Iterator[KernelProgram]:
    """The program with one instruction after the other changed."""
    for agent in program.agents:
        for victim in walk(agent.body):
            if isinstance(victim, kind):
                body = without(agent.body, victim, by(victim))
                agents = (replace(a, body=body) if a is agent else a for a in program.agents)
                yield replace(program, agents=tuple(agents))


def refused(program: KernelProgram) -> str:
    try:
        check_program(program)
    except FaultError as error:
        return str(error)
    return ""


@cache
def sound(name: str = "gathered") -> KernelProgram:
    program = emitted(name, "unspecialized").emitted.program
    assert not refused(program)
    return program


def test_a_missing_wait_is_found() -> None:
    told = [refused(one) for one in changed(sound(), WaitGroup, lambda _: ())]
    assert all(told), told
    assert any("nothing orders the two" in one for one in told)


def test_a_wait_that_leaves_one_group_more_is_found() -> None:
    for one in changed(sound(), WaitGroup, lambda w: (replace(w, left=w.left + 1),)):
        assert refused(one)


def test_a_missing_fence_is_found() -> None:
    """Products read what threads copied only behind a fence of each of them."""
    found = [refused(one) for one in changed(sound(), Fence, lambda _: ())]
    assert any("no fence stands between the two" in one for one in found)
    behind = [one for one in walk(sound().agents[0].body) if isinstance(one, Fence)]
    assert len(found) == len(behind)


def test_a_fence_behind_the_meeting_is_none() -> None:
    """It fences what its own thread copied: the others have theirs not fenced when all meet."""
    program = sound()
    (agent,) = program.agents
    meeting = None
    for one in walk(agent.body):
        if isinstance(one, Step):
            at = [n for n, i in enumerate(one.body) if isinstance(i, WaitGroup)]
            if at:
                meeting = one
                wait, fence, meet = one.body[at[0] : at[0] + 3]
                assert isinstance(fence, Fence)
                assert isinstance(meet, ThreadBarrier)
                swapped = (*one.body[: at[0]], wait, meet, fence, *one.body[at[0] + 3 :])
                body = without(agent.body, one, (replace(one, body=swapped),))
                assert "no fence" in refused(replace(program, agents=(replace(agent, body=body),)))
    assert meeting is not None


def test_a_missing_meeting_is_found() -> None:
    """Others' elements are not there yet, or others still read the slot."""
    told = [refused(one) for one in changed(sound(), ThreadBarrier, lambda _: ())]
    assert all(told), told


def test_a_missing_group_is_found() -> None:
    told = [refused(one) for one in changed(sound(), CommitGroup, lambda _: ())]
    assert any(told)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shorter_rings_are_sound(depth: int) -> None:
    """Slots that are asked for again at once: all threads meet before."""
    made = emitted("columns", "unspecialized", depth)
    assert max(made.emitted.rings.values()) <= depth
    assert not refused(made.emitted.program)
    given = inputs("columns")
    found = run_program_of_kernel(made.emitted.program, given, (2,)).arrays["c_ptr"]
    assert np.array_equal(found, wanted("columns", given))


def test_what_only_a_promise_says_of_addresses_is_loaded() -> None:
    """Promises in the source are not printed, so Triton would see single elements."""
    with (
        patch.object(loop_copies, "copied_at_once", lambda _, copies: dict.fromkeys(copies, 1)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        patch.object(Emitter, "_stages", (2,)),
    ):
        made = emit(COPIES / "gathered.ttir", "h200", mode="unspecialized")
    assert "wait_group(" not in made.source
    assert "gl.load(" in made.source
