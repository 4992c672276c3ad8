"""What a page asks to be different, as it says it: all of it with every question.

{"settings": {"slots.CUDA.capacity": 2},   of the machine, by the path in its file
 "tiles": {"load_k[0]": 128},              of the loop's tiles
 "latencies": {"qk": 300},                 of operations that state their own
 "pins": ["qk=start:849"]}                 where operations are to stand
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stretto.document import Cursor
from stretto.errors import StrettoError
from stretto.limits import CYCLES
from stretto.loop import Loop
from stretto.machine.settings import Setting
from stretto.view.tiles import with_tiles


@dataclass(frozen=True, slots=True)
class Change:
    """The differences from what was read."""

    settings: dict[str, Setting] = field(default_factory=dict[str, Setting])
    tiles: dict[str, int] = field(default_factory=dict[str, int])
    latencies: dict[str, int] = field(default_factory=dict[str, int])
    pins: tuple[str, ...] = ()

    def of(self, loop: Loop) -> Loop:
        """The loop as it is then; pins are the solver's to add."""
        changed = with_tiles(loop, self.tiles) if self.tiles else loop
        known = {op.name for op in loop.ops}
        for name in self.latencies:
            if name not in known:
                raise StrettoError(f"there is no operation `{name}`", loop.name)
        return replace(
            changed,
            ops=tuple(
                replace(op, latency=self.latencies[op.name]) if op.name in self.latencies else op
                for op in changed.ops
            ),
        )


def read_change(row: Cursor) -> Change:
    """The change that a page asks for; DocumentError where it is none."""
    return row.record(
        Change,
        "",
        settings=lambda c: {key: _setting(value) for key, value in c.entries()},
        tiles=lambda c: {key: value.positive() for key, value in c.entries()},
        latencies=lambda c: {key: _latency(value) for key, value in c.entries()},
        pins=lambda c: tuple(item.text() for item in c.items()),
    )


def _setting(cursor: Cursor) -> Setting:
    return cursor.text() if isinstance(cursor.value, str) else cursor.integer()


def _latency(cursor: Cursor) -> int:
    cycles = cursor.natural()
    if cycles > CYCLES:
        raise cursor.fail(f"is {cycles:,}", f"at most {CYCLES:,} cycles are allowed")
    return cycles
