"""Views stand where they are read, on whichever side of a step's beginning a schedule has them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import stretto
from gluon_cases import holds, shipped
from stretto.compile.candidates import Emitter
from stretto.emission import emit_gluon
from stretto.loop import Dependence
from stretto.machine import load_machine
from stretto.materialization import materialize
from stretto.program.builder import Looped, Worker

BACKWARD = "triton/attention_backward_kv"


def test_an_address_that_is_made_behind_the_first_product_is_of_its_iteration() -> None:
    """Its `splat` stays in front of the product, with which the agent's step begins."""
    machine = load_machine("h200")
    ready = Emitter(shipped(BACKWARD)).lowered(2)
    (one,) = ready.loops
    chains = (("delta_2", "scores_t_2", "delta_4"), ("delta_3", "scores_t_3", "delta_5"))
    orders = [Dependence(a, b, 1, 0, "order") for chain in chains for a, b in pairwise(chain)]
    loop = replace(one.wiring.loop, stated=(*one.wiring.loop.stated, *orders))
    found = stretto.schedule(loop, machine, max_stages=3)
    starts, ii = found.starts, found.ii or 1
    for chain in chains:
        assert len({starts[op] // ii for op in chain}) == 1
    program = materialize(found.problem.loop, machine, found, "specialized")
    looped = Looped(one.operation, replace(one.wiring, loop=loop), program, False)
    workers = [Worker(name, 4, 240) for name in ("compute", "compute.1")]
    workers.append(Worker("copy", 1, 24, False))
    holds(BACKWARD, emit_gluon(ready.kernel, [looped], machine, workers).source)
