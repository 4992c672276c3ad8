"""Candidates that no bound lets be the fastest: left out at first, made where the compiler asks."""

from __future__ import annotations

from dataclasses import dataclass

from gluon_cases import shipped
from stretto.compile.candidates import Emitter
from stretto.compile.choice import chosen, settled
from stretto.emission import Emitted

MATMUL = "triton/matmul_pointers"


@dataclass(frozen=True)
class Assembled:
    """An assembler that spills where it is told to."""

    spilled: int
    smem: int = 0
    registers: int = 168
    overwritten: bool = False
    listing: str = ""

    @property
    def clean(self) -> bool:
        return not self.spilled


def test_what_is_left_out_is_never_what_is_chosen_of_all() -> None:
    few = Emitter(shipped(MATMUL))
    every, some = Emitter(shipped(MATMUL)).candidates(), few.candidates(every=False)
    assert len(some) < len(every)
    assert chosen(some, few.machine).source == chosen(every, few.machine).source
    left = list(few.otherwise())
    best = min(one.length for one in some)
    assert left
    assert all(one.length > best for one in left)
    assert {one.source for one in (*some, *left)} == {one.source for one in every}


def test_what_was_left_out_is_compiled_once_all_else_spills() -> None:
    emitter = Emitter(shipped(MATMUL))
    made = emitter.candidates(every=False)
    sources = {one.source for one in made}

    def assemble(emitted: Emitted) -> Assembled:
        return Assembled(8 if emitted.source in sources else 0)

    taken = settled(made, emitter.machine, assemble, emitter.otherwise)
    assert taken.source not in sources
    assert list(emitter.otherwise()) == []
