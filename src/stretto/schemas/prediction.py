"""How fast kernels will be."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.values import Natural, Positive, Where


class PredictedLoop(TypedDict):
    """`prediction.loop` of a prediction document."""

    name: str
    ii: Natural
    stages: Natural
    cycles: Annotated[float, "an iteration"]
    trips: Annotated[Natural, "in a middling block"]
    bound: Annotated[
        str,
        "what it is bound by: one of its units or of its kinds; few trips: it ends "
        "before its steps are steady, and its cycles are the II",
    ]
    by_machine_code: Annotated[bool, "whether its cycles are those of its machine code"]
    units: Annotated[dict[str, float], "cycles of an iteration in which each is busy"]
    agent: Annotated[str, "the one that computes"]
    kinds: Annotated[dict[str, float], "cycles of its iteration by kind, which add up to it"]
    agents: Annotated[
        dict[str, dict[str, float]],
        "cycles of an iteration by what each agent spends them on, which add up to it",
    ]


class StockLoop(TypedDict):
    """`prediction.stock.loop` of a prediction document."""

    name: str
    cycles: Annotated[float, Where(minimum=0)]


class StockPrediction(TypedDict):
    """The kernel as Triton itself compiles it, by its machine code."""

    seconds: Annotated[float, Where(exclusiveMinimum=0)]
    resident_blocks: Positive
    spilled: Annotated[Natural, "bytes of a thread"]
    loops: list[StockLoop]


class ComparedStep(TypedDict):
    """`prediction.measured.longest` of a prediction document."""

    agent: str
    what: Annotated[
        Literal["wait", "work", "issue"],
        "a wait, work before one, or an issue with the work before it",
    ]
    op: Annotated[str, "the operation that waits, or will, or is issued"]
    thing: Annotated[str, "full RING, free RING, products, product or copy"]
    predicted: Annotated[float, "cycles"]
    measured: Annotated[float, "cycles"]
    longer: Annotated[float, "cycles more than predicted"]
    timings: Annotated[list[str], "timings of the machine that the prediction has it from"]


class MeasuredTimeline(TypedDict):
    """A measured timeline beside the predicted one."""

    blocks: Positive
    steps: Annotated[Positive, "of each block, that were compared"]
    longest: Annotated[ComparedStep | None, "the wait that was longer than predicted by most"]
    compared: list[ComparedStep]


class KernelPrediction(TypedDict):
    """`prediction` of a prediction document."""

    of: Annotated[str, "the file, or the kernel"]
    kernel: str
    machine: str
    machine_why: Annotated[
        str,
        "why it is this machine: as asked, named by the loop, the target of a kernel, or a default",
    ]
    mode: Literal["specialized", "unspecialized"]
    consumers: Natural
    rings: Annotated[dict[str, Natural], "slots of each"]
    grid: list[Natural]
    loops: list[PredictedLoop]
    block_cycles: float
    fill_and_drain_cycles: float
    resident_blocks: Natural
    waves: float
    cycles: Annotated[float, "of all blocks"]
    tail_cycles: float
    clock_mhz: float
    seconds: float
    tflops: float | None
    bound: str
    spills: bool
    spilled: Annotated[
        Natural,
        "registers of a thread that are too many by our count; where assembled, "
        "bytes of a thread that the assembler spills",
    ]
    assembled: Annotated[bool, "whether the assembler was asked"]
    setback: Annotated[float, "what its time is multiplied by in the ranking"]
    stock: NotRequired[StockPrediction]
    measured: NotRequired[MeasuredTimeline]


class PredictionDocument(TypedDict):
    """How fast kernels will be, the fastest first."""

    schema: Literal["stretto.prediction/1"]
    success: bool
    predictions: list[KernelPrediction]
    refused: Annotated[list[str], "configurations that cannot be, and why"]
