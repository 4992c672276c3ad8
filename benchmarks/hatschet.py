"""Dependence graphs of HatScheT below a folder, as loops on the machines they bring along.

X.graphml, X_RM.xml (or XRM.xml)  ──►  Loop, Machine
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import stretto
from stretto import Loop, Machine, load_machine


def graphs(folder: Path) -> Iterator[tuple[str, Loop, Machine]]:
    """Every graph below a folder: its path without the suffix, its loop, its machine."""
    for path in sorted(folder.rglob("*.graphml")):
        (loop,) = stretto.read(path)
        name = path.relative_to(folder).with_suffix("").as_posix()
        assert loop.machine is not None
        yield name, replace(loop, name=name), load_machine(loop.machine)
