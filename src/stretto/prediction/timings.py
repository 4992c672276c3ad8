"""The figures of a machine that predictions take, by name, in cycles unless said otherwise.

[timings.wait]
values = [82, 4]
meaning = "a wait for what is there: of four warps, and of each warp more"
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.limits import FASTEST, SLOWEST
from stretto.machine import Machine
from stretto.prediction.blocks import Pipes
from stretto.prediction.instructions import Costs

REQUIRED = (
    "wait", "arrive", "settle", "wake", "expect", "copy_issue", "copy_clock", "copy_port",
    "copy_queue", "copy_latency_l2", "copy_latency_hbm", "copy_rate_l2", "copy_rate_hbm",
    "copy_rate_shared", "copy_rate_apart", "copy_outside", "copy_cached", "copy_narrow",
    "product_issue", "product_latency", "beside", "special", "elements", "meeting", "further",
    "read", "lag", "pipes", "sms", "clock", "launch", "block", "store", "threads", "registers",
)  # fmt: skip
SEVERAL = {
    "wait": 2, "arrive": 2, "copy_narrow": 2, "product_issue": 2, "elements": 2, "meeting": 4,
    "pipes": 2, "store": 2,
}  # fmt: skip
"""Figures of more than one value."""
DIVIDED_BY = (
    "copy_clock", "copy_port", "copy_rate_l2", "copy_rate_hbm", "copy_rate_shared",
    "copy_rate_apart", "copy_narrow", "beside", "special", "read", "sms", "clock", "store",
)  # fmt: skip
"""Figures that have to be above 0."""
HUNDREDTHS = 100


@dataclass(frozen=True)
class Timings:
    """What the engine takes, and what is known of the whole GPU."""

    costs: Costs
    pipes: Pipes
    read: float
    """Bytes of shared memory a cycle that products read at most."""
    issue: tuple[float, float]
    """Of a product: cycles, and cycles for each of n × k of it."""
    sms: int
    memory: float
    """MHz of the SMs at which copies were measured."""
    clock: float
    """MHz while all SMs multiply."""
    launch: float
    """Nanoseconds of a launch."""
    block: float
    """Cycles from the beginning of a block to that of its agents."""
    follow: float
    """Cycles from the end of a block of several agents to the beginning of the next, beyond."""
    crowded: tuple[float, ...]
    """Cycles of a loop, beyond its steps, of one consumer more than two, of two more, ..."""
    store: tuple[float, float]
    """Of a copy out: until it has read shared memory, and bytes a cycle."""
    threads: int
    registers: int
    cached: int
    """Bytes that are found in L2 again."""
    alone: dict[str, float]
    """Bytes a cycle by where they come from, of tiles that no other block loads."""
    together: float
    """Bytes a cycle of tiles that blocks in step share."""
    outside: float
    """Part of their time that passes outside of the SMs."""
    apart: float
    """Bytes a cycle of tiles that blocks share which fell out of step."""
    narrow: tuple[float, float]
    """Part of what shared tiles have, for those whose rows have 64 bytes; and of what tiles have
    that no other block loads."""


MANY = 4.0
"""Blocks that load a tile, from which on more of them make no difference."""
READ = (64.0, 96.0, 128.0)
"""Bytes of shared memory a cycle that products read, for which meetings were measured."""
ELEMENTS = 8192
"""Of the tile for which it was measured how long adding and comparing take."""
SLOTS = 8.0
"""Cycles that an instruction takes of the special function units, and one to be issued."""


def clock_of(timings: Timings, given: float | None) -> float:
    """MHz that are asked for, or else of the machine; StrettoError where no SM has such a clock."""
    clock = timings.clock if given is None else given
    if not SLOWEST <= clock <= FASTEST:
        raise StrettoError(f"a clock of {clock:g} MHz; give one of {SLOWEST} to {FASTEST:,} MHz")
    return clock


def timings_of(machine: Machine) -> Timings:
    """The figures of a machine; StrettoError where it does not state them."""
    missing = [name for name in REQUIRED if machine.timing(name) is None]
    if missing:
        told = f"machine {machine.name} states no timings ({', '.join(missing[:3])}, ...)"
        raise StrettoError(f"{told}; predict for one that does, such as h200")
    figures = {figure.name: tuple(map(float, figure.values)) for figure in machine.timings}
    for name in REQUIRED:
        values, wanted = figures[name], SEVERAL.get(name, 1)
        told = f"machine {machine.name}: timings.{name} has"
        if len(values) != wanted:
            raise StrettoError(f"{told} {len(values)} values; it takes {wanted}")
        if name in DIVIDED_BY and not all(values):
            raise StrettoError(f"{told} 0 in it; give a number above 0")
    latency = {source: figures[f"copy_latency_{source}"][0] for source in ("l2", "hbm")}
    alone = {s: figures[f"copy_rate_{s}"][0] / HUNDREDTHS for s in ("l2", "hbm")}
    wait, arrive = figures["wait"], figures["arrive"]
    costs = Costs(
        wait=wait[0],
        wait_warp=wait[1],
        arrive=arrive[0],
        arrive_warp=arrive[1],
        wake=figures["wake"][0],
        expect=figures["expect"][0],
        copy_issue=figures["copy_issue"][0],
        latency=latency,
        queue=figures["copy_queue"][0],
        port=figures["copy_port"][0],
        rate=alone,
        product_latency=figures["product_latency"][0],
        settle=figures["settle"][0],
        beside=figures["beside"][0] / HUNDREDTHS,
        special=figures["special"][0] / HUNDREDTHS,
        meeting=tuple(zip(READ, figures["meeting"][1:], strict=True)),
    )
    slots = {slot.id: slot.name for slot in machine.slots}
    if any(int(n) not in slots for n in figures["pipes"]):
        told = f"machine {machine.name}: timings.pipes names slots by their ids"
        raise StrettoError(f"{told}; it has {', '.join(map(str, slots))}")
    arithmetic, special = (slots[int(n)] for n in figures["pipes"])
    issue = figures["product_issue"]
    return Timings(
        costs,
        Pipes(
            arithmetic,
            special,
            1 / SLOTS,
            *(x / ELEMENTS for x in figures["elements"]),
            lag=figures["lag"][0],
            meeting=figures["meeting"][0],
            further=figures["further"][0],
        ),
        figures["read"][0],
        (issue[0], 1 / issue[1] if issue[1] else 0.0),
        int(figures["sms"][0]),
        figures["copy_clock"][0],
        figures["clock"][0],
        figures["launch"][0],
        figures["block"][0],
        figures.get("agents_follow", (0.0,))[0],
        figures.get("crowded_loop", ()),
        (figures["store"][0], figures["store"][1]),
        int(figures["threads"][0]),
        int(figures["registers"][0]),
        int(figures["copy_cached"][0]),
        alone,
        figures["copy_rate_shared"][0] / HUNDREDTHS,
        figures["copy_outside"][0] / HUNDREDTHS,
        figures["copy_rate_apart"][0] / HUNDREDTHS,
        (figures["copy_narrow"][0] / HUNDREDTHS, figures["copy_narrow"][1] / HUNDREDTHS),
    )
