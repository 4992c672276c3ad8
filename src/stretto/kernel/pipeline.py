"""The one list of passes, from a front end's kernel to nv_tileas on a machine.

    tile.view_load, tile.dot, ...                          what Triton or cuTile wrote
        fixed arguments                                    for machines that say who issues what
        addresses of views that no host can make
        views of addresses
        zeros outside ─ promoted sums
        reshapes last ─ contracted sums
        partition                                          rows split between consumers
        whole views ─ counted offsets                      for all
        longest first                                      order of blocks, for machines as above
        hidden steps                                       of consumers, by their masks
        straightened                                       for all
        in nv_tileas                                       buffers, copies, products, waits
    async.tiled_tma_load, async.wgmma, ...

Every command and every launch goes through it, so that all of them speak of the same loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.contracting import with_contracted_sums
from stretto.kernel.fixed_arguments import with_fixed_arguments
from stretto.kernel.hidden_steps import with_hidden_steps
from stretto.kernel.lowering import in_nv_tileas
from stretto.kernel.lowering.address_views import with_views_of_addresses
from stretto.kernel.lowering.branches import straightened
from stretto.kernel.lowering.offsets import with_counted_offsets
from stretto.kernel.lowering.own_numbers import with_own_numbers
from stretto.kernel.lowering.view_addresses import with_addresses_of_views
from stretto.kernel.lowering.views import with_whole_views
from stretto.kernel.padding import with_zeros_outside
from stretto.kernel.partition import partition
from stretto.kernel.promotion import with_promoted_sums
from stretto.kernel.reshaping import with_reshapes_last
from stretto.kernel.tree import Kernel, Lowered
from stretto.machine import Machine

Pass = Callable[[Kernel], Kernel | Lowered]
"""A kernel made into another; `Lowered` where something is worth saying of it."""


def passes(machine: Machine, configuration: Configuration) -> Iterator[Pass]:
    """What a kernel goes through, in order."""
    if machine.agents:
        yield with_fixed_arguments
        yield with_addresses_of_views
        yield with_views_of_addresses
        yield with_zeros_outside
        yield with_promoted_sums
        yield with_reshapes_last
        yield with_contracted_sums
    if configuration.consumers != 1:
        agents = machine.replicas_of_products(configuration.consumers)
        if machine.agents and configuration.blocks == "persistent":
            (units,) = machine.timing("sms") or (1,)
            yield partial(_between_consumers, agents=agents, blocks=units)
        else:
            yield partial(partition, agents=agents)
    yield with_whole_views
    yield with_counted_offsets
    if machine.agents:
        yield with_own_numbers
        (cache,) = machine.timing("l2") or (None,)
        # Other blocks than those of the launch are seldom asked for: their passes load then.
        if configuration.blocks == "longest":
            from stretto.kernel.block_order import with_longest_first  # noqa: PLC0415

            yield partial(with_longest_first, cache=cache)
        elif configuration.blocks == "persistent":
            from stretto.kernel.persistence import with_work_tiles  # noqa: PLC0415

            (units,) = machine.timing("sms") or (1,)
            yield partial(with_work_tiles, blocks=units, cache=cache)
    if machine.agents and configuration.consumers != 1:
        yield partial(
            with_hidden_steps, agents=machine.replicas_of_products(configuration.consumers)
        )
    yield straightened
    if configuration.blocks == "persistent":
        machine = _of_tiles(machine)
    yield partial(in_nv_tileas, machine=machine, copies=configuration.copies)


def _between_consumers(kernel: Kernel, agents: Sequence[str], blocks: int) -> Kernel:
    """The rows of a block split between consumers, where there are enough of them; else each has
    a neighbouring block, as long as blocks go over several tiles in any case."""
    from stretto.kernel.neighbours import (  # noqa: PLC0415 - likewise
        GROUP_ROWS,
        rows_of_products,
        with_neighbours,
    )

    rows = rows_of_products(kernel)
    if rows is not None and rows < GROUP_ROWS * len(agents) and rows == GROUP_ROWS:
        return with_neighbours(kernel, agents, blocks)
    return partition(kernel, agents)


def _of_tiles(machine: Machine) -> Machine:
    """The machine for blocks that go over several tiles, which hold more factors in registers."""
    found = (replace(one, held=max(one.held, one.held_of_tiles)) for one in machine.products)
    return replace(machine, products=tuple(found))


def lower(kernel: Kernel, machine: Machine, configuration: Configuration = DEFAULT) -> Lowered:
    """A kernel for a machine; KernelError, at the user's place, where something has no lowering."""
    lowered = Lowered(kernel)
    for one in passes(machine, configuration):
        found = one(lowered.kernel)
        if isinstance(found, Lowered):
            lowered = replace(found, notes=(*lowered.notes, *found.notes))
        else:
            lowered = replace(lowered, kernel=found)
    return lowered
