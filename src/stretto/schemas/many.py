"""Many loops: batches, suites, sweeps."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from stretto.schemas.values import RULES, Natural, Positive, Unit, Where


class BatchRowDocument(TypedDict):
    """One loop of a batch, as a line of what `stretto batch` writes."""

    schema: Literal["stretto.batch-row/1"]
    id: Annotated[
        Annotated[str, Where(pattern="^[0-9a-f]{16}$")],
        "Of place, content and settings: a row of this id is not made again",
    ]
    settings: Annotated[
        Annotated[str, Where(pattern="^[0-9a-f]{16}$")],
        "Of options, machine and Stretto: a file has rows of one kind",
    ]
    number: Annotated[Positive, "Place of the document among the inputs"]
    source: Annotated[str, "The file, with the number of the line where each line is a document"]
    index: Annotated[Natural, "Place of the loop in its document"]
    of: Annotated[Positive, "Loops that the document has"]
    loop: Annotated[str | None, "Its name; null: it came to nothing before the name was known"]
    success: bool
    errors: list[str]
    seconds: Annotated[float, Where(minimum=0)]
    machine: NotRequired[str]
    machine_why: NotRequired[
        Annotated[
            str,
            "why it is this machine: as asked, named by the loop, the target of a "
            "kernel, or a default",
        ]
    ]
    unit: NotRequired[Unit]
    generator: NotRequired[str]
    rule: NotRequired[str]
    ii: NotRequired[Positive | None]
    mii: NotRequired[Positive | None]
    limiter: NotRequired[Literal["resource", "recurrence", "fine", "dependence", "group"] | None]
    lower_bound: NotRequired[int | None]
    optimal: NotRequired[bool]
    stages: NotRequired[Natural]
    pipeline_depth: NotRequired[Natural]
    memory: NotRequired[dict[str, Natural]]
    registers: NotRequired[Natural | None]
    starts: NotRequired[dict[str, Natural]]
    fused: NotRequired[list[Annotated[list[str], Where(minItems=2)]]]
    overdue: NotRequired[Annotated[bool, "Whether the time limit ended the search"]]
    kept: NotRequired[Annotated[bool, "Whether the schedule came from the store of answers"]]
    warnings: NotRequired[list[str]]


class BatchDocument(TypedDict):
    """What a batch came to, as `stretto batch --json` prints it."""

    schema: Literal["stretto.batch/1"]
    success: Annotated[bool, "Whether every loop has a schedule"]
    loops: Natural
    scheduled: Natural
    failed: Natural
    optimal: Natural
    at_the_mii: Natural
    overdue: Natural
    kept: Natural
    found_before: Annotated[Natural, "Rows that were there when the run began"]
    seconds: Annotated[float, Where(minimum=0)]
    failures: Annotated[list[str], "The first of them; the rows have all"]
    notes: list[str]


class BenchSuite(TypedDict):
    """`suite` of a bench document."""

    name: str
    loops: Natural
    failed: Natural
    unverified: Natural
    at_mii: Natural
    proved: Natural
    better: Natural
    equal: Natural
    worse: Natural
    mean_gap_percent: Annotated[float, Where(minimum=0)]
    worst_gap_percent: Annotated[float, Where(minimum=0)]
    median_seconds: Annotated[float, Where(minimum=0)]
    p95_seconds: Annotated[float, Where(minimum=0)]
    worst_seconds: Annotated[float, Where(minimum=0)]
    growth: float | None


class BenchLoop(TypedDict):
    """`loop` of a bench document."""

    suite: str
    file: str
    loop: str
    success: bool
    ops: Natural
    mii: Natural
    ii: Positive | None
    lower_bound: Natural
    optimal: bool
    verified: bool
    stages: Natural
    seconds: Annotated[float, Where(minimum=0)]
    generator: str
    overdue: bool
    peer: Positive | None
    error: str
    machine: str
    machine_why: Annotated[
        str,
        "why it is this machine: as asked, named by the loop, the target of a kernel, or a default",
    ]
    unit: Annotated[Literal["", "cycles", "weights"], "of its II"]


class BenchComparison(TypedDict):
    """`comparison` of a bench document."""

    old: str
    regressions: list[str]
    improvements: list[str]
    missing: list[str]
    added: Natural


class BenchDocument(TypedDict):
    """How good and how fast schedules are, suite by suite."""

    schema: Literal["stretto.bench/1"]
    success: Annotated[
        bool, "Every loop has a verified schedule, and nothing is worse than in the other run."
    ]
    asked: dict[str, Any]
    suites: list[BenchSuite]
    loops: list[BenchLoop]
    comparison: BenchComparison | None
    notes: list[str]


class SweepConfiguration(TypedDict):
    """`configuration` of a sweep document."""

    number: Natural
    values: dict[str, int | float | str | bool]
    success: bool
    ii: int | None
    mii: Natural
    optimal: bool
    stages: Natural
    smem: Natural
    tmem: Natural
    registers: Natural
    spills: bool
    trips: int | None
    grid: Annotated[Annotated[list[Positive], Where(maxItems=3)], "blocks along each axis"]
    blocks: int | None
    block_cycles: int | None
    cycles: int | None
    predicted_by: str
    error: str
    measured: float | None
    seconds: Annotated[float, Where(minimum=0)]
    machine: str
    machine_why: Annotated[
        str,
        "why it is this machine: as asked, named by the loop, the target of a kernel, or a default",
    ]
    unit: Annotated[Literal["", "cycles", "weights"], "of its II and its times"]


class SweepDocument(TypedDict):
    """Every configuration of a kernel or a machine."""

    schema: Literal["stretto.sweep/1"]
    success: Annotated[bool, "Some configuration has a schedule."]
    subject: str
    asked: dict[str, Any]
    figures: Annotated[
        list[Literal["ii", "stages", "smem", "registers", "tmem", "cycles"]], Where(minItems=1)
    ]
    configurations: list[SweepConfiguration]
    front: Annotated[list[Natural], "Numbers of the configurations that none beats."]
    best: Annotated[int | None, "The number of the one that is predicted fastest."]
    measured: Annotated[list[Natural], "Numbers of those that were measured, the fastest first."]
    agreement: Annotated[float | None, "The rank correlation of predicted and measured order."]
    notes: list[str]
    seconds: Annotated[float, Where(minimum=0)]


RULES[BatchRowDocument] = {
    "if": {"properties": {"success": {"const": True}}},
    "then": {
        "required": [
            "machine",
            "machine_why",
            "unit",
            "generator",
            "rule",
            "ii",
            "mii",
            "limiter",
            "lower_bound",
            "optimal",
            "stages",
            "pipeline_depth",
            "memory",
            "registers",
            "starts",
            "fused",
            "overdue",
            "kept",
            "warnings",
        ],
        "properties": {
            "errors": {"maxItems": 0},
            "ii": {"type": "integer"},
            "loop": {"type": "string"},
        },
    },
    "else": {"properties": {"errors": {"minItems": 1}}},
}
