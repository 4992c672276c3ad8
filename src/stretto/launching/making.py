"""From the content of a kernel to its source on disk, where it does not lie there already."""

from __future__ import annotations

from collections.abc import Callable

from stretto.api.emitting import emit
from stretto.kernel import Kernel
from stretto.kernel.lowering.conflicts import written
from stretto.launching.asked import Asked
from stretto.launching.compiling import can_compile, compile_emitted
from stretto.launching.reporting import described, report
from stretto.launching.storing import Entry, Store
from stretto.machine import Machine


def make(
    name: str, key: str, read: Callable[[], Kernel], asked: Asked, store: Store | None = None
) -> Entry:
    """The entry of a key: found, or scheduled and emitted; StrettoError where it cannot be."""
    keep = store or Store()
    entry = keep.get(key, name)
    if entry is None:
        machine = asked.machine
        assert isinstance(machine, Machine), "Asked.on gives it"
        kernel = read()
        made = emit(
            kernel,
            machine,
            mode=asked.mode,
            consumers=asked.consumers,
            depth=asked.depth,
            assemble=compile_emitted if can_compile() else None,
        )
        entry = keep.put(key, name, made.source, *described(name, made, machine, written(kernel)))
    report(name, key, entry)
    return entry
