"""Legal schedules broken in one way each: the verifier names that rule, with the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import pytest

from stretto.errors import StrettoError
from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Budget, Machine, Pool, Slot
from stretto.machine.machine import Agent
from stretto.solution import Placement, Schedule, ScheduleAnalysis, SpaceUse, StorageUse, TableRow
from stretto.solution.views import analyse
from stretto.verification import RULES, Violation, verify

MACHINE = Machine(
    "four",
    "the slots of the four-op body",
    (
        Slot(11, "tma", 1),
        Slot(12, "tc_and_mma", 1),
        Slot(15, "tp_smem_rd", 1, fusion_cap=5),
        Slot(16, "tp_smem_wr", 1),
        Slot(19, "tp_mma", 1),
        Slot(20, "alu", 3),
        Slot(21, "simt", None),
    ),
    pools=(Pool("register_bank", 2),),
    budgets=(Budget("smem", 1000), Budget("tmem", 500), Budget("register", 1 << 18, unit=512)),
)

LOAD = Op("load", "load", results=("v",), uses=(Use("tma", 8), Use("tp_smem_wr", 8)), latency=8)
WRITE = Op("write", "write", uses=(Use("tp_smem_wr", 7),), latency=7)
WGMMA = Op("wgmma", "wgmma", uses=(Use("tc_and_mma", 8), Use("tp_mma", 8)), latency=16)
READ = Op("read", "read", (Operand("v"),), uses=(Use("tp_smem_rd", 7),), latency=7)
FOUR = Loop("four", (LOAD, WRITE, WGMMA, READ), (Value("v"),))
STARTS = {"load": 0, "write": 8, "wgmma": 0, "read": 8}


@dataclass(frozen=True)
class Given:
    """A schedule and what it is of."""

    loop: Loop
    ii: int
    starts: dict[str, int]
    fused: tuple[tuple[str, ...], ...] = ()
    machine: Machine = MACHINE
    max_stages: int | None = None
    edit: Callable[[ScheduleAnalysis], ScheduleAnalysis] = lambda analysis: analysis

    @property
    def analysis(self) -> ScheduleAnalysis:
        made = analyse(self.loop, self.machine, Schedule(self.ii, self.starts, self.fused))
        return self.edit(made)

    def violations(self) -> tuple[Violation, ...]:
        return verify(self.loop, self.machine, self.analysis, max_stages=self.max_stages)

    def at(self, **starts: int) -> Given:
        return replace(self, starts={**self.starts, **starts})

    def op(self, name: str, **fields: object) -> Given:
        ops = tuple(replace(o, **fields) if o.name == name else o for o in self.loop.ops)  # pyright: ignore[reportArgumentType]
        return replace(self, loop=replace(self.loop, ops=ops))

    def depends(self, *stated: Dependence) -> Given:
        return replace(self, loop=replace(self.loop, stated=self.loop.stated + stated))

    def edited(self, **fields: object) -> Given:
        def edit(analysis: ScheduleAnalysis) -> ScheduleAnalysis:
            return replace(analysis, **fields)  # pyright: ignore[reportArgumentType]

        return replace(self, edit=edit)

    def placing(self, op: str, **fields: int) -> Given:
        def edit(analysis: ScheduleAnalysis) -> ScheduleAnalysis:
            placements = tuple(
                replace(p, **fields) if p.op == op else p for p in analysis.placements
            )
            return replace(analysis, placements=placements)

        return replace(self, edit=edit)


BASE = Given(FOUR, 15, STARTS)

# Reads that may fuse, and an operation between them for paths and contractions.
_READS = tuple(
    Op(f"read{i}", "read", uses=(Use("tp_smem_rd", 7),), latency=7, facts=Facts(bank=0))
    for i in range(6)
)
_MIDS = tuple(Op(f"mid{i}", "mid", uses=(), latency=0) for i in range(2))
FUSED = Given(
    Loop("reads", _READS[:4] + _MIDS),
    14,
    {"read0": 0, "read1": 0, "read2": 7, "read3": 7, "mid0": 0, "mid1": 0},
    fused=(("read0", "read1"), ("read2", "read3")),
)

# A tile that is loaded, taken in place and put away, in four registers of each thread of a warp.
_TILE = TileType((128,), "f32")
LATE = Op("late", "store", (Operand("x"),), uses=(), latency=1)
TILES = Given(
    Loop(
        "tiles",
        (
            Op("load", "load", results=("x",), uses=(Use("tma", 4),), latency=4),
            Op("use", "math.exp2", (Operand("x"),), ("y",), uses=(Use("alu", 4),), latency=4),
            Op("keep", "store", (Operand("y"),), uses=(), latency=1),
        ),
        (Value("x", _TILE), Value("y", _TILE), Value("w", _TILE)),
    ),
    12,
    {"load": 0, "use": 4, "keep": 8},
    machine=replace(MACHINE, agents=(Agent("g", ("tma", "mma", "simt"), 1, 4),)),
)

# A product that reads a tile in registers, adds to another, and is waited for.
_SUMS = (
    Op("load", "load", results=("x",), uses=(Use("tma", 4),), latency=4),
    Op(
        "mul",
        "async.wgmma",
        (Operand("x"), Operand("b"), Operand("r", 1)),
        ("s",),
        uses=(Use("tc_and_mma", 6),),
        latency=6,
    ),
    Op("wait", "async.wgmma_wait", (Operand("s"),), ("r",), uses=(Use("alu", 1),), latency=1),
)
SUMS = Given(
    Loop(
        "sums",
        _SUMS,
        (Value("x", _TILE), Value("s", _TILE), Value("r", _TILE, None, "s"), Value("b")),
    ),
    12,
    {"load": 0, "mul": 4, "wait": 10},
    machine=replace(MACHINE, agents=(Agent("g", ("tma", "mma", "simt"), 1, 8),)),
)
_TWO = replace(MACHINE, agents=(Agent("g", ("tma", "mma", "simt"), 1, 4, replicas=2),))
SPLIT = replace(TILES, machine=_TWO).op("keep", agent="g.1")
_KEPT = Storage("kept", "register", 512, fixed=True)

# A ring of smem that three operations share, a fixed accumulator, a live-in table.
RING = Given(
    Loop(
        "ring",
        (
            Op("fill", "load", writes=("ring",), uses=(Use("tma", 8),), latency=20),
            Op(
                "use",
                "mma",
                reads=(Access("ring"), Access("table")),
                writes=("acc",),
                uses=(Use("tc_and_mma", 8),),
                latency=16,
            ),
        ),
        storages=(
            Storage("ring", "smem", 200),
            Storage("acc", "tmem", 400, fixed=True),
            Storage("table", "smem", 100),
        ),
    ),
    16,
    {"fill": 0, "use": 24},
)
# ring: born 0, dead 24 + 16 = 40: three copies at II 16, 600 + 100 bytes of 1000.

POOL = Given(
    Loop(
        "pool",
        (
            Op("a", "x", uses=(Use("alu", 4),), demands=(Demand("register_bank", 1),), latency=1),
            Op("b", "x", uses=(Use("alu", 4),), demands=(Demand("register_bank", 2),), latency=1),
        ),
    ),
    8,
    {"a": 0, "b": 4},
)

GROUP = (
    BASE.op("load", constraint=Constraint(gid=3))
    .op("write", constraint=Constraint(gid=3))
    .op("read", constraint=Constraint(gid=4, leader_gid=3))
)

# A member that stands one stage behind the rest of its group.
BEHIND = GROUP.op("read", constraint=Constraint(gid=4, leader_gid=3, stage_offset=1)).at(read=23)

# Members of unlike duration and offset: one hold from 1 to 9, and 3 cycles left of 11.
UNLIKE = replace(
    FUSED.op("read0", uses=(Use("tp_smem_rd", 5, offset=2),))
    .op("read1", uses=(Use("tp_smem_rd", 8, offset=1), Use("tma", 0)))
    .op("read2", uses=(Use("tp_smem_rd", 3),))
    .op("read3", uses=(Use("tp_smem_rd", 2),))
    .at(read2=9, read3=9),
    ii=11,
)

# Next iteration's `use` reads this iteration's ring, and `fill` is long done with its slots:
# born 0, dead 24 + 16 + 16 = 56: four copies at II 16, 800 + 100 bytes of 1000.
CARRIED_READ = RING.op("use", reads=(Access("ring", 1), Access("table")))

# Nothing reads what `fill` fills, but its slot is held until 50: four copies at II 16.
HELD = RING.op("use", reads=()).op("fill", uses=(Use("simt", 50),))

_TABLE = (
    TableRow(0, 8, 0x48C00, (("tma", 1), ("tc_and_mma", 1), ("tp_smem_wr", 1), ("tp_mma", 1)), ()),
    TableRow(8, 7, 0xC000, (("tp_smem_rd", 1), ("tp_smem_wr", 1)), ()),
)
"""What BASE holds: load and wgmma from 0 to 8, write and read from 8 to 15."""


def _said(row: int, **fields: object) -> Given:
    rows = list(_TABLE)
    rows[row] = replace(rows[row], **fields)  # pyright: ignore[reportArgumentType]
    return BASE.edited(table=tuple(rows))


LEGAL = {
    "table": BASE.edited(table=_TABLE),
    "table in three": BASE.edited(
        table=(replace(_TABLE[0], cycles=3), replace(_TABLE[0], cycle=3, cycles=5), _TABLE[1])
    ),
    "tiles": TILES,
    "sums": SUMS,
    "split": SPLIT,
    "unlike": UNLIKE,
    "carried read": CARRIED_READ,
    "two writers": RING.op("use", writes=("acc", "ring")),
    "held": HELD,
    "pool with offset": POOL.op("a", uses=(Use("alu", 4, offset=3),)),
    "base": BASE,
    "fused": FUSED,
    "ring": RING,
    "pool": POOL,
    "group": GROUP,
    "behind": BEHIND,
    "wrapped": BASE.at(read=10),
    "stages": BASE.at(write=23, read=24),
    "capped": replace(
        RING,
        loop=replace(
            RING.loop, storages=(Storage("ring", "smem", 200, depth=3), *RING.loop.storages[1:])
        ),
    ),
    "unlimited": BASE.op("wgmma", uses=(Use("simt", 900, occupancy=9),)),
    "loop slot": replace(
        BASE.op("wgmma", uses=(Use("own", 15),)),
        loop=replace(BASE.op("wgmma", uses=(Use("own", 15),)).loop, slots=("own",)),
    ),
    "full hold": BASE.op("read", uses=(Use("tp_smem_rd", 15),)),
    "shared": POOL.at(b=0).op("b", demands=(Demand("register_bank", 1),)),
    "unstated counts": BASE.edited(stage_count=0, pipeline_depth=0, storages=(), memory=()),
    "unstated machine": BASE.edited(machine=""),
    "unstated budget": RING.edited(
        memory=(SpaceUse("smem", 700, None), SpaceUse("tmem", 400, None))
    ),
    "lifted budget": replace(
        RING.edited(memory=(SpaceUse("smem", 700, 1000), SpaceUse("tmem", 400, 500))),
        machine=replace(MACHINE, budgets=(Budget("smem", None), Budget("tmem", 500))),
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    given = LEGAL[name]
    assert check(given.loop, given.machine) == ()
    assert given.violations() == ()


def _swapped_orders(analysis: ScheduleAnalysis) -> ScheduleAnalysis:
    order = {p.op: p.order for p in analysis.placements}
    order["load"], order["wgmma"] = order["wgmma"], order["load"]
    return replace(
        analysis, placements=tuple(replace(p, order=order[p.op]) for p in analysis.placements)
    )


def _placements(given: Given, *extra: Placement, without: str = "") -> Given:
    kept = tuple(p for p in given.analysis.placements if p.op != without)
    return given.edited(placements=kept + extra)


def _rows(change: Callable[[StorageUse], StorageUse]) -> Given:
    rows = RING.analysis.storages
    return RING.edited(storages=(change(rows[0]), *rows[1:]))


def _long(name: str, cycles: int, given: Given = BASE) -> Given:
    return given.op(
        name, uses=tuple(replace(u, duration=cycles) for u in given.loop.op(name).uses or ())
    )


CARRIED = BASE.depends(Dependence("wgmma", "load", 16, 1, "flow"))
ANTI = BASE.depends(Dependence("read", "load", 24, 1, "anti"))
SKEWED = BASE.at(load=15, write=23, wgmma=15, read=23)
REFUSED = replace(
    RING, machine=replace(MACHINE, budgets=(Budget("smem", 699), Budget("tmem", 400)))
)
TIGHT = replace(RING, machine=replace(MACHINE, budgets=(Budget("smem", 700), Budget("tmem", 399))))
CHAIN = FUSED.depends(Dependence("read0", "mid0", 0), Dependence("mid0", "read1", 0))

# name: (rule, given, what the message must say)
BROKEN: dict[str, tuple[str, Given, list[str]]] = {
    # what is published of the machine
    "another machine": (
        "order",
        BASE.edited(machine="five"),
        ["the schedule is said to be of machine `five`, not of `four`"],
    ),
    "another budget": (
        "storage",
        RING.edited(memory=(SpaceUse("smem", 700, 2000), SpaceUse("tmem", 400, 500))),
        ["smem is said to hold 2,000 bytes; four gives it 1,000"],
    ),
    # dependence
    "read early": (
        "dependence",
        BASE.at(read=7),
        ["`read` starts at 7; `load` is ready at 8 (start 0 + latency 8, distance 0, II 15)"],
    ),
    "slow load": (
        "dependence",
        BASE.op("load", latency=9),
        ["`read` starts at 8; `load` is ready at 9 (start 0 + latency 9, distance 0, II 15)"],
    ),
    "carried": (
        "dependence",
        CARRIED,
        [
            "`load` starts at 15 (start 0, 1 iteration later); `wgmma` is ready at 16",
            "(start 0 + latency 16, distance 1, II 15)",
        ],
    ),
    "anti": (
        "dependence",
        ANTI,
        ["(start 0, 1 iteration later); `read` is done at 32 (start 8 + latency 24, distance 1"],
    ),
    "itself": (
        "dependence",
        BASE.depends(Dependence("wgmma", "wgmma", 31, 2)),
        ["`wgmma` starts at 30 (start 0, 2 iterations later); `wgmma` is ready at 31"],
    ),
    # slot
    "same stage": (
        "slot",
        BASE.at(write=7),
        [
            "slot `tp_smem_wr` (capacity 1), 2 is held at cycle 7",
            "`load` of iteration 0 holds 1 from 0 to 8",
            "`write` of iteration 0 holds 1 from 7 to 14",
            "II 15",
        ],
    ),
    "next iteration": (
        "slot",
        BASE.at(write=9),
        [
            "2 is held at cycle 15",
            "`write` of iteration 0 holds 1 from 9 to 16",
            "`load` of iteration 1 holds 1 from 15 to 23",
        ],
    ),
    "far stage": (
        "slot",
        BASE.at(write=15 * 40 + 4),
        ["`load` of iteration 40", "`write` of iteration 0", "2 is held at cycle 604"],
    ),
    "hold longer than II": (
        "slot",
        _long("read", 16),
        [
            "`read` alone holds 1 of slot `tp_smem_rd` (capacity 1) for 16 cycles",
            "II 15 leaves at most 15",
        ],
    ),
    "four on three": (
        "slot",
        replace(
            POOL,
            loop=Loop("alu", (Op("a", "x", uses=(Use("alu", 9, occupancy=2),), latency=1),)),
            starts={"a": 0},
        ),
        [
            "slot `alu` (capacity 3), 4 is held at cycle 8",
            "`a` of iteration 0",
            "`a` of iteration 1 holds 2 from 8 to 17",
        ],
    ),
    "offset": (
        "slot",
        BASE.op("read", uses=(Use("tp_smem_wr", 1, offset=7),)).at(read=8),
        ["`read` of iteration 0 holds 1 from 15 to 16", "`load` of iteration 1"],
    ),
    "not fused": ("slot", replace(FUSED, fused=(("read0", "read1"),)), ["2 is held at cycle 7"]),
    "unlike begins": (
        "slot",
        UNLIKE.op("read2", uses=(Use("tp_smem_rd", 4),)),
        [
            "`read2` + `read3` of iteration 0 holds 1 from 9 to 13",
            "`read0` + `read1` of iteration 1 holds 1 from 12 to 20",
        ],
    ),
    "unlike ends": (
        "slot",
        UNLIKE.at(read2=8, read3=8),
        ["`read0` + `read1` of iteration 0 holds 1 from 1 to 9", "2 is held at cycle 8"],
    ),
    "unknown slot": (
        "slot",
        BASE.op("wgmma", uses=(Use("warp", 1),)),
        ["`warp`, which four has not"],
    ),
    # pool
    "pool over": (
        "pool",
        POOL.at(b=3),
        [
            "pool `register_bank` (cap 2), 3 is drawn at cycle 3",
            "`a` of iteration 0 draws 1 from 0 to 4",
            "`b` of iteration 0 draws 2 from 3 to 7",
        ],
    ),
    "pool next": (
        "pool",
        POOL.at(b=5),
        ["3 is drawn at cycle 8", "`b` of iteration 0 draws 2 from 5 to 9"],
    ),
    "pool alone": (
        "pool",
        POOL.op("b", uses=(Use("simt", 9),)).at(a=0),
        ["`b` alone draws 2 of pool `register_bank` (cap 2) for 9 cycles; II 8 leaves at most 8"],
    ),
    "pool of a group": (
        "pool",
        FUSED.op("read0", demands=(Demand("register_bank", 2),)).op(
            "read1", demands=(Demand("register_bank", 1),)
        ),
        ["3 is drawn at cycle 0"],
    ),
    "unknown pool": (
        "pool",
        POOL.op("a", demands=(Demand("sea", 1),)),
        ["pool `sea`, which four has not"],
    ),
    # depth
    "deep": (
        "depth",
        BASE.at(write=23).op("write", constraint=Constraint(max_depth=0)),
        ["`write` is in stage 1 (start 23, II 15); its max_depth is 0"],
    ),
    "deeper": (
        "depth",
        BASE.at(write=38).op("write", constraint=Constraint(max_depth=1)),
        ["`write` is in stage 2 (start 38, II 15); its max_depth is 1"],
    ),
    "max stages": (
        "depth",
        replace(BASE.at(write=38), max_stages=2),
        ["the schedule has 3 stages; at most 2 are allowed"],
    ),
    # group
    "gid": (
        "group",
        GROUP.at(write=23),
        [
            "at II 15",
            "`load` in stage 0 (start 0), `write` in stage 1 (start 23)",
            "`read` in stage 0 (start 8)",
        ],
    ),
    "leader": ("group", GROUP.at(read=15), ["`read` in stage 1 (start 15)"]),
    "stage offset": (
        "group",
        BEHIND.at(read=8),
        [
            "one group must, but for their offsets, share a stage at II 15",
            "`load` in stage 0 (start 0)",
            "`read` in stage 0 (start 8, stage_offset 1)",
        ],
    ),
    "stage offset too far": ("group", BEHIND.at(read=38), ["`read` in stage 2 (start 38"]),
    "all apart": (
        "group",
        GROUP.at(write=23, read=38),
        ["`write` in stage 1", "`read` in stage 2"],
    ),
    # pin
    "pinned start": (
        "pin",
        BASE.op("write", constraint=Constraint(start=9)),
        ["`write` is pinned to start 9; it has start 8 (start 8, II 15)"],
    ),
    "pinned stage": (
        "pin",
        BASE.op("read", constraint=Constraint(stage=1)),
        ["`read` is pinned to stage 1; it has stage 0 (start 8, II 15)"],
    ),
    "pinned cycle": (
        "pin",
        BASE.op("read", constraint=Constraint(stage=0, cycle=7)),
        ["`read` is pinned to cycle 7; it has cycle 8 (start 8, II 15)"],
    ),
    "not before": (
        "pin",
        BASE.op("wgmma", constraint=Constraint(before=("load",))),
        ["`wgmma` is to start before `load`; it starts at 0, `load` at 0"],
    ),
    # registers
    "two tiles": (
        "registers",
        TILES.at(use=16, keep=20),
        ["g has registers for 512 bytes of tiles; at cycle 12 (II 12) 1,024 live: `x` 2 × 512"],
    ),
    "kept for a later reader": (
        "registers",
        replace(
            TILES,
            loop=replace(TILES.loop, ops=(*TILES.loop.ops, LATE)),
            starts={**TILES.starts, "late": 9},
        ),
        ["at cycle 8 (II 12) 1,024 live: `x` 512 + `y` 512"],
    ),
    "before the loop": (
        "registers",
        TILES.op("use", operands=(Operand("x"), Operand("w"))),
        ["`w` 512 + `x` 512"],
    ),
    "not waited for": (
        "registers",
        SUMS.at(wait=15),
        ["g has registers for 1,024 bytes of tiles; at cycle 12 (II 12) 1,536 live: `x` 2 × 512"],
    ),
    "kept in registers": (
        "registers",
        replace(TILES, loop=replace(TILES.loop, storages=(_KEPT,))).op("use", writes=("kept",)),
        ["`kept` 512 + `x` 512"],
    ),
    "of a replica": (
        "registers",
        SPLIT.at(use=16, keep=20),
        ["g has registers for 512 bytes of tiles; at cycle 12 (II 12) 1,024 live: `x` 2 × 512"],
    ),
    # storage
    "over budget": (
        "storage",
        RING.at(use=57),
        [
            "smem holds 1,000 bytes; the schedule needs 1,100",
            "(`ring` 5 × 200 + `table` 1 × 100, II 16)",
        ],
    ),
    "smaller budget": ("storage", REFUSED, ["smem holds 699 bytes; the schedule needs 700"]),
    "fixed over": (
        "storage",
        TIGHT,
        ["tmem holds 399 bytes; the schedule needs 400 (`acc` 1 × 400"],
    ),
    "ring one small": (
        "storage",
        _rows(lambda row: replace(row, ring_depth=row.ring_depth - 1)),
        ["storage `ring` is said to have ring depth 2; counted at II 16: 3"],
    ),
    "lifetime": (
        "storage",
        _rows(lambda row: replace(row, lifetime=41)),
        ["storage `ring` is said to have lifetime 41; counted at II 16: 40"],
    ),
    "bytes": (
        "storage",
        _rows(lambda row: replace(row, bytes=20)),
        ["bytes 20; counted at II 16: 200"],
    ),
    "space": (
        "storage",
        _rows(lambda row: replace(row, space="tmem")),
        ["space tmem; counted at II 16: smem"],
    ),
    "row unknown": (
        "storage",
        RING.edited(storages=(*RING.analysis.storages, StorageUse("ghost", "smem", 1, 16, 1))),
        ["`ghost`, which is no storage"],
    ),
    "row missing": (
        "storage",
        RING.edited(storages=RING.analysis.storages[:2]),
        ["storage `table` has no published row"],
    ),
    "row twice": (
        "storage",
        RING.edited(storages=RING.analysis.storages + RING.analysis.storages[:1]),
        ["storage `ring` has 2 published rows"],
    ),
    "memory": (
        "storage",
        RING.edited(memory=(SpaceUse("smem", 699, 1000), SpaceUse("tmem", 400, 500))),
        ["smem is said to need 699 bytes; counted at II 16: 700"],
    ),
    "memory missing": (
        "storage",
        RING.edited(memory=(SpaceUse("smem", 700, 1000),)),
        ["tmem has 0 published rows; the loop needs 400 bytes"],
    ),
    "carried over": (
        "storage",
        replace(CARRIED_READ, machine=replace(MACHINE, budgets=(Budget("smem", 899),))),
        ["smem holds 899 bytes; the schedule needs 900 (`ring` 4 × 200 + `table` 1 × 100"],
    ),
    "held over": (
        "storage",
        replace(HELD, machine=replace(MACHINE, budgets=(Budget("smem", 899),))),
        ["smem holds 899 bytes; the schedule needs 900 (`ring` 4 × 200 + `table` 1 × 100"],
    ),
    # fusion
    "over cap": (
        "fusion",
        replace(
            FUSED,
            loop=Loop("six", _READS),
            starts={op.name: 0 for op in _READS},
            fused=(tuple(op.name for op in _READS),),
        ),
        ["6 operations share slot `tp_smem_rd`, whose fusion cap is 5"],
    ),
    "bank": (
        "fusion",
        FUSED.op("read1", facts=Facts(bank=1)),
        ["the same bank, stated: `read0` 0; `read1` 1"],
    ),
    "bank unstated": (
        "fusion",
        FUSED.op("read0", facts=Facts()).op("read1", facts=Facts()),
        ["`read0` not stated; `read1` not stated"],
    ),
    "kind": (
        "fusion",
        FUSED.op("read1", kind="peek"),
        ["the same kind, stated: `read0` read; `read1` peek"],
    ),
    "start": (
        "fusion",
        replace(FUSED.at(read1=7, read2=14, read3=14), ii=21),
        ["fused operations start together: `read0` at 0, `read1` at 7"],
    ),
    "other iteration": (
        "fusion",
        replace(FUSED.at(read1=35), ii=21, fused=(("read0", "read1"), ("read2", "read3"))),
        ["`read0` at 0, `read1` at 35"],
    ),
    "slots": (
        "fusion",
        replace(
            FUSED,
            machine=replace(MACHINE, slots=(*MACHINE.slots, Slot(22, "other", 1, fusion_cap=2))),
        ).op("read1", uses=(Use("other", 7),)),
        ["the same slots, stated: `read0` tp_smem_rd; `read1` other"],
    ),
    "slot cannot": (
        "fusion",
        FUSED.op("read0", uses=(Use("tma", 7),)).op("read1", uses=(Use("tma", 7),)),
        ["`read0` + `read1` hold slot `tma`, which cannot be shared"],
    ),
    "holds nothing": (
        "fusion",
        replace(FUSED, fused=(*FUSED.fused, ("mid0", "mid1")))
        .op("mid0", facts=Facts(bank=0))
        .op("mid1", facts=Facts(bank=0)),
        ["`mid0` is fused, but holds no slot"],
    ),
    "path": (
        "fusion",
        CHAIN,
        ["`read1` waits for `read0` in the same iteration: read0 -> mid0 -> read1"],
    ),
    "edge": (
        "fusion",
        FUSED.depends(Dependence("read2", "read3", 0, 0, "order")),
        ["`read3` waits for `read2` in the same iteration: read2 -> read3"],
    ),
    "edge backwards": (
        "fusion",
        replace(FUSED, fused=(("read1", "read0"), FUSED.fused[1])).depends(
            Dependence("read0", "read1", 0)
        ),
        ["`read1` waits for `read0` in the same iteration: read0 -> read1"],
    ),
    "contraction": (
        "fusion",
        replace(
            FUSED,
            machine=replace(MACHINE, slots=tuple(replace(s, capacity=2) for s in MACHINE.slots)),
        )
        .at(read2=0, read3=0)
        .depends(Dependence("read0", "read2", 0), Dependence("read3", "read1", 0)),
        ["fused groups wait for one another", "`read0` + `read1`", "`read2` + `read3`"],
    ),
    "nesting": ("fusion", FUSED.op("read1", parent="read0"), ["`read1` is nested in `read0`"]),
    "deep nesting": (
        "fusion",
        FUSED.op("read1", parent="mid0").op("mid0", parent="read0"),
        ["`read1` is nested in `read0`"],
    ),
    "two groups": (
        "fusion",
        replace(
            FUSED.at(read2=0, read3=7),
            fused=(
                ("read0", "read1"),
                ("read0", "read2"),
            ),
        )
        .at(read2=0)
        .op("read2", uses=(Use("tp_smem_rd", 0),)),
        ["`read0` is in 2 fused groups"],
    ),
    "one member": (
        "fusion",
        replace(FUSED, fused=(*FUSED.fused, ("mid0",))),
        ["has 1 members; it needs 2"],
    ),
    "twice in a group": (
        "fusion",
        replace(FUSED, fused=(("read0", "read1", "read1"), FUSED.fused[1])),
        ["`read1` stands 2 times"],
    ),
    "ghost": (
        "fusion",
        replace(FUSED, fused=(("read0", "read1", "ghost"), FUSED.fused[1])),
        ["`ghost` is fused"],
    ),
    # order
    "no ii": ("order", BASE.edited(ii=None), ["has no II"]),
    "ii zero": ("order", BASE.edited(ii=0), ["the II is 0"]),
    "missing": ("order", _placements(BASE, without="write"), ["`write` has no place"]),
    "unknown": ("order", _placements(BASE, Placement("ghost", 3, 0, 4)), ["`ghost` is placed"]),
    "twice": (
        "order",
        _placements(BASE, Placement("read", 10, 0, 4)),
        ["`read` is placed 2 times: at 8, 10"],
    ),
    "negative": (
        "order",
        BASE.at(wgmma=-3).op("wgmma", uses=()),
        ["`wgmma` starts at -3; no start is below 0"],
    ),
    "late origin": (
        "order",
        SKEWED,
        ["the first operation, `load`, starts at 15: stage 1 at II 15; the smallest stage is 0"],
    ),
    "stage": (
        "order",
        BASE.placing("read", stage=1),
        ["`read` is said to be in stage 1; start 8 is in stage 0 at II 15"],
    ),
    "order": (
        "order",
        replace(BASE, edit=_swapped_orders),
        [
            "`load` is said to be number 1 of its stage; start 0 makes it number 0 of stage 0",
            "`wgmma` is said to be number 0",
        ],
    ),
    "order gap": (
        "order",
        BASE.placing("read", order=4),
        ["`read` is said to be number 4", "number 3"],
    ),
    "table short": (
        "order",
        _said(1, cycles=6),
        ["the reservation table has 14 cycles; the II is 15"],
    ),
    "table gap": (
        "order",
        _said(1, cycle=9),
        ["the reservation table has a row of 7 cycles from 9; the rows before it end at 8"],
    ),
    "table held": (
        "slot",
        _said(1, held=(("tp_smem_rd", 2), ("tp_smem_wr", 1))),
        ["the reservation table says 2 of slot `tp_smem_rd` in cycle 8; counted at II 15: 1"],
    ),
    "table late": (
        "slot",
        BASE.edited(
            table=(replace(_TABLE[0], cycles=9), replace(_TABLE[1], cycle=9, cycles=6)),
        ),
        [
            "the reservation table says 1 of slot `tma` in cycle 8; counted at II 15: 0",
            "the reservation table says 0 of slot `tp_smem_rd` in cycle 8; counted at II 15: 1",
        ],
    ),
    "table word": (
        "slot",
        _said(0, word=0x48400),
        ["the row word of cycle 0 is said to be 0x48400; it is 0x48c00"],
    ),
    "table drawn": (
        "pool",
        _said(1, drawn=(("register_bank", 1),)),
        ["the reservation table says 1 of pool `register_bank` in cycle 8; counted at II 15: 0"],
    ),
    "stage count": (
        "order",
        BASE.edited(stage_count=2),
        ["the stage count is said to be 2; the last stage is 0"],
    ),
    "pipeline depth": (
        "order",
        BASE.edited(pipeline_depth=1),
        [
            "said to be 1; `wgmma` is ready at 16 (start 0 + latency 16)",
            "which takes 2 intervals of 15",
        ],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    rule, given, said = BROKEN[name]
    violations = given.violations()
    assert {v.rule for v in violations} == {rule}, violations
    text = "\n".join(v.message for v in violations)
    for words in said:
        assert words in text


def test_every_rule_is_broken_in_three_ways() -> None:
    for rule in RULES:
        assert sum(1 for broken, _, _ in BROKEN.values() if broken == rule) >= 3


def test_capped_ring_breaks_its_dependence_and_its_cap() -> None:
    capped = LEGAL["capped"].at(use=33)
    violations = capped.violations()
    assert [v.rule for v in violations] == ["dependence", "storage"]
    assert "(each lives 49 cycles, II 16); its ring is capped at 3" in violations[1].message
    assert dict(violations[1].detail) == {"storage": "ring", "copies": 4, "cap": 3}


def test_every_violation_is_told() -> None:
    given = BASE.at(write=7, read=7).op("wgmma", constraint=Constraint(max_depth=0)).at(wgmma=15)
    assert [v.rule for v in given.violations()] == ["dependence", "slot", "depth"]


def test_the_same_collision_is_told_once() -> None:
    (violation,) = BASE.at(write=7).violations()
    assert violation.ops == ("load", "write")
    assert dict(violation.detail) == {
        "slot": "tp_smem_wr",
        "limit": 1,
        "cycle": 7,
        "load": 2,
        "ii": 15,
    }
    assert violation.to_json() == {
        "rule": "slot",
        "message": violation.message,
        "ops": ["load", "write"],
        "detail": dict(violation.detail),
    }


def test_register_space_and_unlimited_budgets_are_not_checked() -> None:
    storages = tuple(replace(s, bytes=10**9) for s in RING.loop.storages)
    huge = replace(RING, loop=replace(RING.loop, storages=storages))
    assert {v.rule for v in huge.violations()} == {"storage"}
    lifted = replace(MACHINE, budgets=(Budget("smem", None),))
    assert replace(huge, machine=lifted).violations() == ()
    storages = tuple(replace(s, space="register") for s in storages)
    assert replace(huge, loop=replace(RING.loop, storages=storages)).violations() == ()


def test_failed_analysis() -> None:
    (violation,) = verify(FOUR, MACHINE, ScheduleAnalysis("four", "four", False))
    assert violation.rule == "order"
    assert "nothing to verify" in violation.message


def test_unresolved_loop() -> None:
    loop = replace(FOUR, ops=(replace(LOAD, latency=None), WRITE, WGMMA, READ))
    with pytest.raises(StrettoError, match=r"`load` \(load\) has no latency; classify"):
        verify(loop, MACHINE, BASE.analysis)


def test_broken_shapes_do_not_crash() -> None:
    nothing = ScheduleAnalysis("four", "four", True, 15)
    assert [v.message for v in verify(FOUR, MACHINE, nothing)] == [
        f"`{op.name}` has no place" for op in FOUR.ops
    ]
    ring = ScheduleAnalysis("ring", "four", True, 16, (Placement("fill", 0, 0, 0),))
    assert [v.rule for v in verify(RING.loop, MACHINE, ring)] == ["order"]
    circle = BASE.depends(Dependence("read", "load", 0)).loop
    violations = verify(circle, MACHINE, BASE.analysis)
    assert {v.rule for v in violations} == {"order", "dependence"}
    assert any("form a cycle" in v.message for v in violations)


def test_true_cycle_counts_are_quick() -> None:
    """Sixty operations, holds of thousands of cycles, a far start: milliseconds."""
    ops = tuple(
        Op(f"op{i}", "x", uses=(Use("alu", 40), Use("simt", 9000)), latency=3000) for i in range(60)
    )
    stated = tuple(Dependence(f"op{i}", f"op{i + 1}", 3000) for i in range(59))
    given = Given(Loop("long", ops, stated=stated), 4000, {f"op{i}": 3040 * i for i in range(60)})
    analysis = given.analysis
    before = perf_counter()
    assert verify(given.loop, MACHINE, analysis) == ()
    assert perf_counter() - before < 0.1
    far = given.at(op59=10**12 + 3040 * 59).analysis
    before = perf_counter()
    assert verify(given.loop, MACHINE, far) == ()
    assert perf_counter() - before < 0.1


def test_a_start_beyond_what_a_machine_word_holds() -> None:
    far = BASE.at(read=15 * 10**30 + 8)
    assert far.violations() == ()
    assert {v.rule for v in BASE.at(write=15 * 10**30 + 7).violations()} == {"slot"}


def test_a_long_life_takes_no_time() -> None:
    """One ring, latency 10^8, II 1: as many copies as cycles, none of them looked at."""
    op = Op("fill", "x", writes=("ring",), uses=(), latency=10**8)
    loop = Loop("long", (op,), storages=(Storage("ring", "smem", 1),))
    wide = replace(MACHINE, budgets=(Budget("smem", 10**8),))
    given = Given(loop, 1, {"fill": 0}, machine=wide)
    before = perf_counter()
    assert given.violations() == ()
    tight = replace(given, machine=replace(MACHINE, budgets=(Budget("smem", 10**8 - 1),)))
    (violation,) = tight.violations()
    assert "`ring` 100000000 × 1" in violation.message
    assert perf_counter() - before < 0.1


def test_a_long_hold_of_a_wide_slot_takes_no_time() -> None:
    """Slots and pools that 10^8 iterations may share."""
    wide = replace(
        MACHINE, slots=(Slot(1, "wide", 10**8),), pools=(Pool("deep", 10**8),), budgets=()
    )
    uses, demands = (Use("wide", 10**8),), (Demand("deep", 1),)
    one = Op("one", "x", uses=uses, demands=demands, latency=1)
    given = Given(Loop("long", (one,)), 1, {"one": 0}, machine=wide)
    before = perf_counter()
    assert given.violations() == ()
    two = Op("two", "x", uses=(Use("wide", 1),), latency=1)
    both = Given(Loop("long", (one, two)), 1, {"one": 0, "two": 0}, machine=wide)
    (violation,) = both.violations()
    assert perf_counter() - before < 0.1
    assert violation.rule == "slot"
    assert "100000001 is held" in violation.message
    assert violation.message.endswith("; and 99999995 more")
