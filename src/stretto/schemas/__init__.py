"""Documents for programs, as types: what `--json` prints, and what is read back.

    class BoundsDocument(TypedDict): ...     ──►  whoever writes one is checked by its type
                                             └─►  json_schema("bounds"): its published JSON Schema

Fields are annotated with what a schema can say beside their type: a description, or its keywords.
`python -m stretto.schemas` writes all of them anew, and a test says where one is not.
"""

from __future__ import annotations

from typing import Any

from stretto.schemas.assignment import AssignmentDocument
from stretto.schemas.bounds import BoundsDocument
from stretto.schemas.check import CheckDocument
from stretto.schemas.comparison import ComparisonDocument
from stretto.schemas.conversion import ConversionDocument
from stretto.schemas.error import ErrorDocument
from stretto.schemas.explanation import ExplanationDocument
from stretto.schemas.kernel import (
    EmittedDocument,
    KernelDocument,
    PipelinedKernel,
    RefusedKernel,
    TunedDocument,
)
from stretto.schemas.loop import LoopDocument
from stretto.schemas.machine import CalibrationDocument, MachineDocument, MachinesDocument
from stretto.schemas.many import BatchDocument, BatchRowDocument, BenchDocument, SweepDocument
from stretto.schemas.prediction import PredictionDocument
from stretto.schemas.remark import RemarksDocument
from stretto.schemas.schedule import ScheduleDocument
from stretto.schemas.simulation import KernelSimulationDocument, SimulationDocument
from stretto.schemas.type_schemas import schema_of
from stretto.schemas.verification import VerificationDocument

DOCUMENTS: dict[str, Any] = {
    "assignment": AssignmentDocument,
    "batch": BatchDocument,
    "batch-row": BatchRowDocument,
    "bench": BenchDocument,
    "bounds": BoundsDocument,
    "calibration": CalibrationDocument,
    "check": CheckDocument,
    "comparison": ComparisonDocument,
    "conversion": ConversionDocument,
    "emitted": EmittedDocument,
    "error": ErrorDocument,
    "explanation": ExplanationDocument,
    "kernel": KernelDocument,
    "kernel-simulation": KernelSimulationDocument,
    "loop": LoopDocument,
    "machine": MachineDocument,
    "machines": MachinesDocument,
    "pipeline": PipelinedKernel | RefusedKernel,
    "prediction": PredictionDocument,
    "remarks": RemarksDocument,
    "schedule": ScheduleDocument,
    "simulation": SimulationDocument,
    "sweep": SweepDocument,
    "tuned": TunedDocument,
    "verification": VerificationDocument,
}
"""The type of a document, by its name."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of documents of this name, such as ``bounds``."""
    return schema_of(DOCUMENTS[name], f"stretto.{name}/1")


__all__ = ["DOCUMENTS", "json_schema"]
