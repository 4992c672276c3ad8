"""What the user asked for, the machine that it means, and the key under which it is kept.

    pipeline(consumers=2) + cuda:90 + TTIR + Stretto itself ──► "9f2c…", one kernel

Two kernels share a key only if everything that their source is made of is the same: the content
that was read, its name, the machine, the options, every file of this package and what it is built
on, and the compiler that candidates are held against.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stretto.caching import package_sum
from stretto.errors import StrettoError
from stretto.launching.compiler import compiler_name
from stretto.machine import Machine, load_machine
from stretto.machine.choice import TARGETS

if TYPE_CHECKING:  # what emits takes long to load, and a launch seldom needs it
    from stretto.compile.emitted import EmitMode
    from stretto.kernel.configuration import Blocks

FORMAT = 2
"""Of what is kept on disk; another number, and what others wrote is not looked at."""
MACHINES = {"cuda:90": TARGETS["cuda:90"]}
"""Which machine a target of Triton's is, where the user names none."""


@dataclass(frozen=True)
class Asked:
    """The options of a kernel, as `stretto.api.emitting.emit` takes them."""

    machine: Machine | str | None = None
    mode: EmitMode | None = None
    consumers: int | None = None
    depth: int | None = None
    blocks: Blocks | None = None

    def on(self, target: str) -> Asked:
        """With the machine itself; StrettoError where a target has none."""
        named = self.machine if self.machine is not None else MACHINES.get(target)
        if named is None:
            known = ", ".join(f"{name} for {goal}" for goal, name in MACHINES.items())
            raise StrettoError(f"no machine is known for {target}; there is {known}")
        return replace(self, machine=load_machine(named) if isinstance(named, str) else named)

    def key(self, name: str, content: bytes) -> str:
        """Of what is made of a content; the machine is looked up already."""
        parts = (str(FORMAT), package_sum(), compiler_name(), repr(self), name)
        found = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass"))
        found.update(content)
        return found.hexdigest()
