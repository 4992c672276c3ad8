"""Results: schedules, bounds with their witnesses, proofs, refusals, and what follows from them."""

from stretto.solution.results import (
    BOUND_NAMES,
    BoundName,
    Bounds,
    Objective,
    Part,
    Placement,
    Pressure,
    Proof,
    Refusal,
    Schedule,
    ScheduleAnalysis,
    SpaceUse,
    StorageUse,
    Witness,
    WitnessKind,
)

__all__ = [
    "BOUND_NAMES",
    "BoundName",
    "Bounds",
    "Objective",
    "Part",
    "Placement",
    "Pressure",
    "Proof",
    "Refusal",
    "Schedule",
    "ScheduleAnalysis",
    "SpaceUse",
    "StorageUse",
    "Witness",
    "WitnessKind",
]
