"""Schedules, as they are read and written."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from stretto.schemas.bounds import Remedy
from stretto.schemas.loop import SlotUse
from stretto.schemas.remark import Place
from stretto.schemas.values import RULES, Natural, Positive, Text, Unit, Where


class ScheduleSource(TypedDict):
    """What was read; the text only in pages."""

    file: str
    text: NotRequired[str]


class ScheduledPart(TypedDict):
    """`loop.bounds.witness.part` of a schedule document."""

    ops: list[Text]
    amount: Annotated[Natural, "Cycles held, units drawn, or latency passed on."]
    distance: NotRequired[
        Annotated[
            int,
            "Iterations crossed to the next operation of a recurrence; between members "
            "of a group, stages.",
        ]
    ]


class ScheduledWitness(TypedDict):
    """The witness of the limiter."""

    kind: Literal["slot", "cycle", "pool", "depth", "group", "none"]
    limit: NotRequired[Annotated[str, "The slot, the pool, or the limited operation."]]
    slot_id: NotRequired[Positive]
    total: Natural
    capacity: Positive
    bound: NotRequired[Annotated[Positive, "ceil(total / capacity), at least 1."]]
    parts: NotRequired[list[ScheduledPart]]


class ScheduledWitnesses(TypedDict):
    """`loop.bounds.witnesses` of a schedule document."""

    resource: ScheduledWitness
    recurrence: ScheduledWitness
    fine: ScheduledWitness
    dependence: ScheduledWitness
    group: NotRequired[ScheduledWitness]


class ScheduledBounds(TypedDict):
    """`loop.bounds` of a schedule document."""

    resource: NotRequired[Positive]
    recurrence: NotRequired[Positive]
    fine: NotRequired[Positive]
    dependence: NotRequired[Positive]
    group: NotRequired[Positive]
    mii: NotRequired[Annotated[Positive, "The largest of them."]]
    limiter: NotRequired[
        Annotated[
            Literal["resource", "recurrence", "fine", "dependence", "group"],
            "The bound that is the MII; the first in this order when several are.",
        ]
    ]
    witness: NotRequired[ScheduledWitness]
    witnesses: ScheduledWitnesses


class Objective(TypedDict):
    """`loop.proof.objective` of a schedule document."""

    name: Text
    value: int
    lower_bound: int
    optimal: bool


class Proof(TypedDict):
    """`loop.proof` of a schedule document."""

    optimal: bool
    lower_bound: int
    method: Text
    objectives: NotRequired[list[Objective]]


class Slack(TypedDict):
    """Cycles it could move by dependences alone while the others stand still; null: any number."""

    earlier: Natural
    later: Annotated[Natural | None, "null: unlimited, or not stated by the machine."]


class BoundBy(TypedDict):
    """The operations that leave it no more slack."""

    earlier: list[Text]
    later: list[Text]


class ScheduledOp(TypedDict):
    """`loop.op` of a schedule document."""

    name: Text
    kind: NotRequired[Annotated[Text, "The opcode."]]
    start: int
    stage: NotRequired[Annotated[int, "start // II, which it is when left out."]]
    cycle: NotRequired[Annotated[Natural, "start % II."]]
    order: NotRequired[
        Annotated[Natural, "Rank inside the stage; follows from the loop when left out."]
    ]
    uses: NotRequired[list[SlotUse]]
    rung: NotRequired[Annotated[str, "The rung of the strategy ladder that seated it."]]
    arm: NotRequired[Annotated[str, "The placement arm that seated it."]]
    fused_with: NotRequired[Annotated[list[Text], "The other members of its fused group."]]
    latency: NotRequired[Annotated[Natural, "Cycles until its result is ready."]]
    completion: NotRequired[Annotated[Natural, "Cycles until it is wholly done."]]
    agent: NotRequired[Annotated[Text | None, "Who issues it."]]
    slack: NotRequired[Slack]
    bound_by: NotRequired[BoundBy]
    location: NotRequired[Annotated[Place | None, "Where it stands in the source."]]


class ReaderEnd(TypedDict):
    """An operation that means what stood there so many iterations before."""

    op: Text
    distance: Natural


class ScheduledStorage(TypedDict):
    """`loop.storage` of a schedule document."""

    name: Text
    space: Literal["smem", "tmem", "register"]
    bytes: Natural
    lifetime: Natural
    ring_depth: Natural
    fixed: NotRequired[Annotated[bool, "Updated in place: one copy."]]
    begin: NotRequired[
        Annotated[int | None, "The start of its first writer; null: nothing writes it."]
    ]
    writers: NotRequired[list[Text]]
    readers: NotRequired[list[ReaderEnd]]


class SpaceUse(TypedDict):
    """`loop.memory.smem` of a schedule document."""

    used: Natural
    budget: NotRequired[Annotated[Natural | None, "null: unlimited, or not stated by the machine."]]


class MemoryUse(TypedDict):
    """`loop.memory` of a schedule document."""

    smem: NotRequired[SpaceUse]
    tmem: NotRequired[SpaceUse]
    register: NotRequired[SpaceUse]


class Pressure(TypedDict):
    """`loop.pressure` of a schedule document."""

    peak: Natural
    budget: NotRequired[Annotated[Natural | None, "null: unlimited, or not stated by the machine."]]
    cycle: Natural


class TableRow(TypedDict):
    """`loop.table` of a schedule document."""

    cycle: Annotated[Natural, "The first cycle, modulo II."]
    cycles: Positive
    word: NotRequired[
        Annotated[
            Annotated[str, Where(pattern="^0x[0-9a-f]{1,16}$")],
            "Bit slot id - 1 of every slot that is held; left out where a machine's "
            "slots fit no word.",
        ]
    ]
    held: NotRequired[dict[str, Natural]]
    drawn: NotRequired[dict[str, Natural]]


class Refusal(TypedDict):
    """`loop.refused` of a schedule document."""

    ii: int
    reason: Text
    through: NotRequired[
        Annotated[int, "The last II of a run refused for the same reason; left out: this II alone."]
    ]
    proved: NotRequired[
        Annotated[bool, "Whether no schedule exists at this II, rather than none being found."]
    ]
    rung: NotRequired[Annotated[str, "The rung that came furthest."]]
    op: NotRequired[Annotated[str, "The operation that found no seat."]]
    uses: NotRequired[Annotated[list[SlotUse], "What that operation holds: its footprint."]]
    window: NotRequired[
        Annotated[
            Annotated[list[int], Where(minItems=2, maxItems=2)],
            "First and last start its seated neighbours allowed.",
        ]
    ]
    rows: NotRequired[
        Annotated[
            list[Annotated[list[Natural], Where(minItems=2, maxItems=2)]],
            "Modulo cycle and row word where it collided.",
        ]
    ]
    limit: NotRequired[
        Annotated[
            str,
            "The pool, slot, memory space or rule that refused; or what ended the "
            "search: work, time limit.",
        ]
    ]
    group: NotRequired[Annotated[list[Text], "The operations it must share a stage with."]]
    stage: NotRequired[
        Annotated[
            Natural,
            "The stage in which it was sought: that of its group, or of the first "
            "start of its window.",
        ]
    ]
    order: NotRequired[
        Annotated[Natural, "How many seated operations of that stage come before it there."]
    ]


class LoopPrediction(TypedDict):
    """N iterations take fixed + per_iteration × n of the unit."""

    fixed: int
    per_iteration: Positive
    prologue: Natural
    epilogue: int
    unit: Literal["cycles", "weights"]


class ResourceLoad(TypedDict):
    """`loop.slot` of a schedule document."""

    name: Text
    id: NotRequired[Annotated[Positive, "The number of a slot."]]
    capacity: Annotated[Positive, "What there is of it in a cycle."]
    held: Annotated[
        Natural, "Cycles of a slot, or units of a pool in a cycle, summed up over one interval."
    ]
    utilization: Annotated[Annotated[float, Where(minimum=0, maximum=1)], "held / (capacity × II)"]
    limiting: Annotated[bool, "Whether it asks for the MII on its own."]


class ScheduledDependence(TypedDict):
    """Start[dst] >= start[src] + latency - II × distance."""

    src: Text
    dst: Text
    latency: int
    distance: Natural
    kind: Literal["flow", "anti", "output", "memory", "order"]
    via: Annotated[str, "The value or storage it comes from."]
    slack: Annotated[Natural, "Cycles left between what it asks for and what it gets."]
    critical: Annotated[
        bool, "Whether it is a step of the recurrence that sets the recurrence bound."
    ]


class OccupancyStep(TypedDict):
    """From this cycle on."""

    cycle: Natural
    live: Natural


class Occupancy(TypedDict):
    """What is alive in each cycle of the interval."""

    space: Literal["smem", "tmem", "register"]
    unit: Literal["bytes", "registers"]
    budget: Annotated[Natural | None, "null: unlimited, or not stated by the machine."]
    steps: list[OccupancyStep]


class ProgramAgent(TypedDict):
    """`loop.program.agent` of a schedule document."""

    name: Text
    role: Literal["all", "tma", "mma", "simt"]
    ops: list[Text]
    warps: Annotated[Natural | None, "null: the machine does not say."]


class Pipe(TypedDict):
    """`loop.program.pipe` of a schedule document."""

    name: Text
    ring: Text
    space: str
    bytes: Natural
    depth: Positive
    producers: list[Text]
    consumers: list[ReaderEnd]
    trivial: Annotated[bool, "No producer is live at its consumer: it is always full."]


class Mutex(TypedDict):
    """`loop.program.mutex` of a schedule document."""

    name: Text
    holder: Text
    waiters: list[ReaderEnd]
    excludes: list[str]


class PipelineProgram(TypedDict):
    """`loop.program` of a schedule document."""

    mode: Literal["specialized", "unspecialized"]
    agents: list[ProgramAgent]
    pipes: list[Pipe]
    mutexes: list[Mutex]


class MeasuredEvent(TypedDict):
    """`loop.measured.event` of a schedule document."""

    op: str
    agent: str
    iteration: int
    start: int
    end: int


class MeasuredRun(TypedDict):
    """Some steps of a run on hardware, where there was one, from where the steady state begins."""

    unit: Literal["cycles"]
    events: list[MeasuredEvent]


class ScheduledLoop(TypedDict):
    """`loop` of a schedule document."""

    name: Text
    machine: NotRequired[str]
    generator: NotRequired[str]
    rule: NotRequired[Annotated[str, "The selection rule that chose the generator."]]
    success: NotRequired[bool]
    errors: NotRequired[
        Annotated[Annotated[list[Text], Where(minItems=1)], "Why there is no schedule, for people."]
    ]
    ii: NotRequired[Annotated[Positive | None, "null when there is no schedule."]]
    bounds: NotRequired[ScheduledBounds | None]
    stage_count: NotRequired[Annotated[Natural, "The last stage + 1; 0: not stated."]]
    pipeline_depth: NotRequired[
        Annotated[Natural, "ceil((max(start + latency) + 1) / II); 0: not stated."]
    ]
    proof: NotRequired[Proof | None]
    ops: NotRequired[list[ScheduledOp]]
    storages: NotRequired[list[ScheduledStorage]]
    memory: NotRequired[MemoryUse]
    pressure: NotRequired[Pressure | None]
    table: NotRequired[
        Annotated[
            list[TableRow],
            "The populated reservation table: all II cycles, those in a row that are "
            "alike together.",
        ]
    ]
    refused: NotRequired[list[Refusal]]
    warnings: NotRequired[list[str]]
    seconds: NotRequired[
        Annotated[Annotated[float, Where(minimum=0)], "The one field that may differ between runs."]
    ]
    machine_digest: NotRequired[
        Annotated[
            Annotated[str, Where(pattern="^sha256:[0-9a-f]{64}$")],
            "Of everything the machine states. From here on: what follows from the "
            "rest, written and never read.",
        ]
    ]
    machine_why: NotRequired[
        Annotated[
            str,
            "why it is this machine: as asked, named by the loop, the target of a "
            "kernel, or a default",
        ]
    ]
    unit: NotRequired[Unit]
    options: NotRequired[
        Annotated[
            dict[str, Any], "What was asked for, by the names of the arguments of stretto.schedule."
        ]
    ]
    spills: NotRequired[Annotated[bool, "Whether it needs more registers than there are."]]
    spilled: NotRequired[
        Annotated[
            Natural,
            "Registers of a thread beyond what its agent has, where no schedule keeps to those.",
        ]
    ]
    prediction: NotRequired[LoopPrediction]
    slots: NotRequired[Annotated[list[ResourceLoad], "The limited slots that are held."]]
    pools: NotRequired[Annotated[list[ResourceLoad], "The pools that are drawn from."]]
    dependences: NotRequired[list[ScheduledDependence]]
    occupancy: NotRequired[list[Occupancy]]
    program: NotRequired[
        Annotated[PipelineProgram | None, "null: the schedule cannot become a specialized program."]
    ]
    remedies: NotRequired[
        Annotated[list[Remedy], "Single changes that lower the MII, the easiest first."]
    ]
    ties: NotRequired[
        Annotated[list[Text], "Where no single change helps: what asks for the MII on its own."]
    ]
    measured: NotRequired[MeasuredRun]


class ScheduleDocument(TypedDict):
    """Schedules, as Stretto reads and writes them."""

    schema: Literal["stretto.schedule/1"]
    success: NotRequired[Annotated[bool, "Whether every loop has a schedule."]]
    error: NotRequired[Annotated[Text, "Why there are no analyses, or not all."]]
    version: NotRequired[Annotated[Text, "Of the Stretto that wrote it."]]
    source: NotRequired[ScheduleSource]
    loops: list[ScheduledLoop]


RULES[MeasuredEvent] = {"additionalProperties": True}


RULES[MeasuredRun] = {"additionalProperties": True}


RULES[ScheduledLoop] = {
    "allOf": [
        {
            "if": {"required": ["success"], "properties": {"success": {"const": False}}},
            "else": {
                "required": ["ii", "ops"],
                "properties": {"ii": {"type": "integer", "minimum": 1}, "errors": False},
            },
        },
        {
            "if": {"required": ["ops"], "properties": {"ops": {"type": "array", "minItems": 1}}},
            "then": {"required": ["ii"], "properties": {"ii": {"type": "integer", "minimum": 1}}},
        },
    ]
}
