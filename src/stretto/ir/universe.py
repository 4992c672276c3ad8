"""What Stretto adds to every xDSL tool, through the `xdsl.universe` entry point.

    xdsl-opt kernel.mlir -p 'tileas-generate-schedule{machine=b200-pipes}'

Nothing is loaded until it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import Universe


def _lazily(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(f"stretto.ir.{module}"), name)


STRETTO = Universe(
    all_dialects={"nv_tileas": _lazily("dialect", "NvTileas")},
    all_passes={
        "tileas-axis-analysis": _lazily("passes.axis_analysis", "AxisAnalysis"),
        "tileas-generate-schedule": _lazily("passes.generate_schedule", "GenerateSchedule"),
        "tileas-make-persistent": _lazily("passes.make_persistent", "MakePersistent"),
        "tileas-materialize-schedule": _lazily(
            "passes.materialize_schedule", "MaterializeSchedule"
        ),
        "tileas-verify-schedule": _lazily("passes.verify_schedule", "VerifySchedule"),
    },
)
