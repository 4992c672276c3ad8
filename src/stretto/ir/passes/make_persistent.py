"""`tileas-make-persistent`: a kernel of a block a tile becomes one of blocks that work on many.

    func @k { %m = block_index {axis = 0} ... }           a grid of 32 × 32 blocks

    func @k { scf.for %tile = %block to 1024 step 128 : i64 {      a grid of 128 blocks
                %m, %n, %valid = work_tile_info %tile {problem, tile, cluster} ... } }

The shapes must agree before anything changes. The index over tiles is as wide as materialization
asks for; the loops inside are scheduled and materialized as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.passes import ModulePass

from stretto.diagnostics import Diagnostic
from stretto.ir.programs.work_tiles import UnpersistentError, construct, info_of
from stretto.ir.telling import PassError, parsed_of, tell
from stretto.materialization import Persistent


@dataclass(frozen=True)
class MakePersistent(ModulePass):
    """Put the body of every function into a loop over work tiles."""

    name = "tileas-make-persistent"

    problem: tuple[int, ...]
    """Extents of what is computed, in elements."""
    tile: tuple[int, ...]
    """What one block of the grid computes of it, as it is written."""
    cluster: tuple[int, ...] = field(default=())
    """Tiles that a cluster works on together along each axis; one unless stated."""
    blocks: int = 1
    """Blocks that share the tiles."""

    @property
    def shape(self) -> Persistent:
        """The loop to make."""
        cluster = self.cluster or (1,) * len(self.tile)
        return Persistent(self.problem, self.tile, cluster, self.blocks)

    def __post_init__(self) -> None:
        faults = self.shape.check()
        if faults:
            raise ValueError("; ".join(faults))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Make the loop of every function."""
        del ctx
        parsed = parsed_of(op)
        errors: list[Diagnostic] = []
        for function in [inner for inner in op.walk() if isinstance(inner, FuncOp)]:
            if function.is_declaration:
                continue
            if any(isinstance(one, ForOp) and info_of(one) for one in function.walk()):
                told = f"`{function.sym_name.data}` goes over work tiles already"
                tell(parsed.diagnose(function, "warning", told))
                continue
            try:
                construct(function, self.shape)
            except UnpersistentError as error:
                told = f"`{function.sym_name.data}` cannot go over work tiles: {error.reason}"
                errors.append(parsed.diagnose(error.op, "error", told))
        if errors:
            raise PassError(errors)
