"""The heart of attention as microbenchmarks measured it, without copies, and as the engine has it.

wait K ─ scores ─ wait V ─ p · V ─ settle ─ arrive ─ softmax ─ settle ─ narrow, rescale ─ arrive

No timing is calibrated with these rows; they are what the engine is held against.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from stretto.machine import load_machine
from stretto.prediction import engine
from stretto.prediction.blocks import LANES, Part, stretches
from stretto.prediction.engine import Ring
from stretto.prediction.flow import mix, product_of
from stretto.prediction.instructions import (
    Arrive,
    Delay,
    Full,
    Instruction,
    Product,
    Settle,
    Step,
)
from stretto.prediction.timings import timings_of

RESULTS = Path(__file__).parents[2] / "benchmarks/gpu/results/micro-h200-2026-11-16.jsonl"
TIMINGS = timings_of(load_machine("h200"))
PIPES = TIMINGS.pipes
MULTIPLIED, NARROWED = 67 / 8192, 50 / 8192
"""Cycles of the arithmetic pipes for an element, as the rows of the machine have them."""
TRIPS, LAST = 48, 24
RINGS = ("k", "v")
Row = Mapping[str, Any]


class Agent:
    """Instructions of one agent, whose work stands between those that are no work."""

    def __init__(self, row: Row) -> None:
        self.m, self.n, self.d = row["m"], row["n"], row["d"]
        self.barriers = bool(row["barriers"])
        self.found: list[Instruction] = []
        self._parts: list[Part] = []

    def say(self, instruction: Instruction) -> None:
        self.flush()
        self.found.append(instruction)

    def flush(self) -> None:
        if self._parts:
            mix(self.found, stretches(self._parts, PIPES.lag, 1))
            self._parts = []

    def elements(self, of: float, made: str, *taken: str, special: bool = False) -> None:
        """An operation on elements, each of which takes so many cycles."""
        units = of / 16 if special else 0.0
        arithmetic = units * PIPES.beside if special else of * MULTIPLIED
        self._parts.append(
            Part(made, arithmetic, units, 0.0, PIPES.lag, False, 0.0, 0.0, taken, (made,))
        )

    def reduced(self, each: float, made: str, taken: str) -> None:
        self._parts.append(
            Part(made, self.m * self.n * each, 0.0, 0.0, PIPES.meeting, True, float(self.m),
                 PIPES.further, (taken,), (made,))
        )  # fmt: skip

    def product(self, columns: int, depth: int, *, staged: bool) -> None:
        tensor = self.m * columns * depth / 2048
        self.say(product_of(tensor, self.m, (depth, columns), staged, TIMINGS))

    def wait(self, ring: str, turn: int) -> None:
        if self.barriers:
            self.say(Full(ring, turn))

    def arrive(self, ring: str, turn: int) -> None:
        self.flush()
        if self.barriers:
            self.say(Arrive(ring, turn))

    def softmax(self) -> None:
        rows, tile = self.m * LANES, self.m * self.n
        self.reduced(PIPES.compare, "highest", "scores")
        self.elements(rows, "scaled", "highest")
        self.elements(rows, "new", "scaled")
        self.elements(tile, "shifted", "scores", "new")
        self.elements(tile, "p", "shifted", special=True)
        self.elements(rows, "shrunk", "new")
        self.elements(rows, "shrink", "shrunk", special=True)
        self.reduced(PIPES.add, "sum", "p")
        self.elements(rows, "weight", "sum", "shrink")

    def narrow(self) -> None:
        self.elements(self.m * self.n * NARROWED / MULTIPLIED, "narrow", "p")

    def rescale(self) -> None:
        self.elements(self.m * self.d, "total", "shrink")

    def trip(self, order: str, turn: int) -> None:
        if order == "rescaled":
            self.rescale()
        self.wait("k", turn)
        self.product(self.n, self.d, staged=True)
        if order == "text":
            self.say(Settle(0))
            self.arrive("k", turn)
            self.softmax()
            self.rescale()
            self.narrow()
        self.wait("v", turn)
        self.product(self.d, self.n, staged=False)
        if order != "text":
            self.say(Settle(1))
            self.arrive("k", turn)
            self.softmax()
        self.say(Settle(0))
        if order != "text":
            self.narrow()
        if order == "scores":
            self.rescale()
        self.arrive("v", turn)
        self.say(Step(0))


def predicted(row: Row) -> float:
    programs: dict[str, tuple[int, list[Instruction]]] = {}
    for number in range(row["agents"]):
        agent = Agent(row)
        if number and row["late"]:
            agent.say(Delay(row["late"], "late"))
        for turn in range(TRIPS):
            agent.trip(row["order"], turn)
        programs[f"agent {number}"] = (4, agent.found)
    # What is waited for is there: nothing is copied.
    rings = {name: Ring(1, row["agents"], dict.fromkeys(range(TRIPS), -1e9)) for name in RINGS}
    outcome = engine.run(programs, rings, TIMINGS.costs)
    assert not outcome.stuck
    steps = outcome.steps["agent 0"][0]
    return (steps[-1] - steps[-1 - LAST]) / LAST


@cache
def rows() -> tuple[Row, ...]:
    """Those measured with all that a kernel has between its waits."""
    lines = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    return tuple(row for row in lines if row["kind"] == "ahead" and row["barriers"] == 2)


@pytest.mark.parametrize(("agents", "most"), [(1, 0.06), (2, 0.05)])
def test_a_step_of_attention_takes_about_what_the_engine_says(agents: int, most: float) -> None:
    off = [abs(predicted(row) / row["mean"] - 1) for row in rows() if row["agents"] == agents]
    assert len(off) >= 19
    assert mean(off) <= most
    assert max(off) <= 0.15


def test_a_product_that_is_read_from_shared_memory_is_what_makes_few_columns_slow() -> None:
    narrow = [row for row in rows() if row["n"] == 32 and row["agents"] == 2]
    assert narrow
    for row in narrow:
        assert predicted(row) == pytest.approx(row["mean"], rel=0.1)
    agent = Agent(narrow[0])
    agent.product(32, 128, staged=True)
    (product,) = agent.found
    assert isinstance(product, Product)
    assert product.cycles == 192
