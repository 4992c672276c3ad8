"""What Stretto adds to every xDSL tool, through the `xdsl.universe` entry point.

    xdsl-opt kernel.mlir -p 'tileas-generate-schedule{machine=b200-pipes}'

Nothing is loaded until it is asked for.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _dialect() -> Dialect:
    from stretto.ir.dialect import NvTileas  # noqa: PLC0415 - loaded when met

    return NvTileas


def _generate_schedule() -> type[ModulePass]:
    from stretto.ir.passes.generate_schedule import GenerateSchedule  # noqa: PLC0415

    return GenerateSchedule


def _verify_schedule() -> type[ModulePass]:
    from stretto.ir.passes.verify_schedule import VerifySchedule  # noqa: PLC0415

    return VerifySchedule


def _materialize_schedule() -> type[ModulePass]:
    from stretto.ir.passes.materialize_schedule import MaterializeSchedule  # noqa: PLC0415

    return MaterializeSchedule


STRETTO = Universe(
    all_dialects={"nv_tileas": _dialect},
    all_passes={
        "tileas-generate-schedule": _generate_schedule,
        "tileas-materialize-schedule": _materialize_schedule,
        "tileas-verify-schedule": _verify_schedule,
    },
)
