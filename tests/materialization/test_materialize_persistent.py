"""The loop over work tiles: shapes that must agree, and a widened index."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs import ready
from stretto.materialization import Persistent, ShapeError, materialize

GOOD = Persistent((512, 384), (128, 128), (2, 1), blocks=4)


def test_tiles_of_a_problem() -> None:
    assert GOOD.check() == ()
    assert GOOD.grid == (4, 3)
    assert GOOD.tiles == 12
    assert [tile.index for tile in GOOD.work(1)] == [1, 5, 9, 13]
    assert [tile.valid for tile in GOOD.work(1)] == [True, True, True, False]


def test_a_cluster_works_on_neighbours() -> None:
    assert [GOOD.coordinates(n) for n in range(4)] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    square = Persistent((512, 512), (128, 128), (2, 2), blocks=4)
    assert [square.coordinates(n) for n in range(4)] == [(0, 0), (1, 0), (0, 1), (1, 1)]


@given(
    axes=st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=3
    ),
    clusters=st.integers(1, 7),
)
def test_blocks_share_all_tiles_and_none_twice(
    axes: list[tuple[int, int, int]], clusters: int
) -> None:
    size = math.prod(c for _, _, c in axes)
    blocks = clusters * size
    problem = tuple(n * t * c for n, t, c in axes)
    shape = Persistent(problem, tuple(t for _, t, _ in axes), tuple(c for _, _, c in axes), blocks)
    assert shape.check() == ()
    work = [tile for block in range(blocks) for tile in shape.work(block)]
    seen = [tile.coordinates for tile in work if tile.valid]
    assert len(seen) == len(set(seen)) == math.prod(n * c for n, _, c in axes)
    assert sum(not tile.valid for tile in work) == blocks
    # The blocks of a cluster work on the tiles of a cluster, all at once.
    for first in range(0, blocks, size):
        mates = [list(shape.work(block)) for block in range(first, first + size)]
        for at_once in zip(*mates, strict=True):
            origins = {
                tuple(x // c for x, (_, _, c) in zip(tile.coordinates, axes, strict=True))
                for tile in at_once
            }
            assert len(origins) == 1
    assert all(
        0 <= x < g for coordinates in seen for x, g in zip(coordinates, shape.grid, strict=True)
    )


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (replace(GOOD, tile=(128,)), "problem 512×384, tile 128, cluster 2×1: the shapes must"),
        (replace(GOOD, tile=(100, 128)), "axis 0: the problem's 512 is no multiple of the tile's"),
        (replace(GOOD, cluster=(2, 2)), "axis 1: 3 tiles (384 / 128) are no multiple of the clus"),
        (replace(GOOD, cluster=(0, 1)), "axis 0: problem 512, tile 128, cluster 0; all must be"),
        (Persistent((), (), ()), "at least 1"),
        (replace(GOOD, blocks=0), "0 blocks share the tiles"),
        (replace(GOOD, blocks=3), "3 blocks share the tiles; clusters have 2, so a multiple of 2"),
        (Persistent((2**32, 2**31), (1, 1), (1, 1)), "9223372036854775808 tiles and 1 blocks are"),
        (replace(GOOD, index="i32"), "the index over tiles is i32; it must be widened to i64"),
        (replace(GOOD, problem=None, blocks=3), "3 blocks share the tiles; clusters have 2"),
        (replace(GOOD, problem=None, cluster=(2,)), "the shapes must have the same number of axes"),
        (replace(GOOD, info=("i64", "i1")), "the work-tile info has 2 parts; 3 are needed"),
        (replace(GOOD, info=("i64", "i32", "i1")), "work-tile coordinates are i32, i64; the index"),
        (replace(GOOD, info=("i64", "i64", "i64")), "the validity of a work tile is i64"),
    ],
)
def test_what_does_not_agree_is_told(shape: Persistent, told: str) -> None:
    assert any(told in fault for fault in shape.check()), shape.check()


def test_a_problem_that_is_known_at_run_time_only_may_be_any() -> None:
    assert not replace(GOOD, problem=None).check()


def test_a_failed_check_invalidates_the_schedule_before_anything_is_solved() -> None:
    case = ready("gemm")
    wrong = replace(GOOD, tile=(100, 128))
    with pytest.raises(ShapeError, match="gemm: the schedule is invalid: axis 0"):
        materialize(case.loop, case.machine, case.analysis, persistent=wrong)
    # Also before the schedule is even looked at.
    unfinished = replace(case.analysis, success=False)
    with pytest.raises(ShapeError):
        materialize(case.loop, case.machine, unfinished, persistent=wrong)


def test_a_program_keeps_its_persistent_loop() -> None:
    case = ready("gemm")
    typed = replace(GOOD, info=("i64", "i64", "i1"))
    program = materialize(case.loop, case.machine, case.analysis, persistent=typed)
    assert program.persistent == typed


@pytest.mark.parametrize("block", [-1, 4])
def test_a_block_that_is_not_there_has_no_work(block: int) -> None:
    with pytest.raises(ShapeError, match=f"block {block}; there are 4"):
        list(GOOD.work(block))
