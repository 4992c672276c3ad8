"""A loop, as it is read and written."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stretto.schemas.values import Natural, Positive, Text, Where


class LoopValue(TypedDict):
    """`value` of a loop document."""

    name: Text
    type: NotRequired[
        Annotated[
            Annotated[str, Where(pattern="^([1-9][0-9]{0,11}x)*[A-Za-z][A-Za-z0-9]*$")],
            "Such as 128x64xf16.",
        ]
    ]
    storage: NotRequired[
        Annotated[Text, "The storage that holds it; without one it lives in registers."]
    ]
    view_of: NotRequired[Annotated[Text, "The value it is another name of."]]


class LoopStorage(TypedDict):
    """`storage` of a loop document."""

    name: Text
    space: Literal["smem", "tmem", "register"]
    bytes: Positive
    fixed: NotRequired[
        Annotated[bool, "Updated in place: one copy. Else a ring, fresh each iteration."]
    ]
    depth: NotRequired[Annotated[Positive, "A cap on the ring."]]


class LoopOperand(TypedDict):
    """`op.operand` of a loop document."""

    value: Text
    distance: NotRequired[Annotated[Natural, "Iterations back."]]
    latency: NotRequired[
        Annotated[Natural, "Cycles after the producer's start; the producer's latency by default."]
    ]


class StorageAccess(TypedDict):
    """`op.read` of a loop document."""

    storage: Text
    distance: NotRequired[Natural]


class SlotUse(TypedDict):
    """`op.use` of a loop document."""

    slot: Text
    duration: Natural
    offset: NotRequired[Natural]
    occupancy: NotRequired[Natural]


class PoolDemand(TypedDict):
    """`op.demand` of a loop document."""

    pool: Text
    units: Natural


class Facts(TypedDict):
    """`op.facts` of a loop document."""

    contiguity: NotRequired[Positive]
    divisibility: NotRequired[Positive]
    constancy: NotRequired[Positive]
    bounds: NotRequired[Annotated[list[int], Where(minItems=2, maxItems=2)]]
    buffer: NotRequired[Literal["global", "smem", "tmem", "register"]]
    bank: NotRequired[Natural]
    bank_width: NotRequired[Natural]
    bank_pairs: NotRequired[Natural]
    bytes: NotRequired[Natural]
    accumulates: NotRequired[bool]
    scratch: NotRequired[Natural]
    cluster: NotRequired[bool]
    tag: NotRequired[Natural]


class OpConstraint(TypedDict):
    """`op.constraint` of a loop document."""

    gid: NotRequired[Natural]
    leader_gid: NotRequired[Natural]
    stage_offset: NotRequired[
        Annotated[
            Natural, "Stages that it stands behind the members of its group whose offset is 0."
        ]
    ]
    max_depth: NotRequired[Natural]
    pending: NotRequired[bool]
    same_depth: NotRequired[
        Annotated[
            Natural,
            "Operations of one number are to share a stage, where that costs no cycle of the II.",
        ]
    ]
    structural: NotRequired[
        Annotated[
            Natural,
            "Operations of one number are to be issued in program order, on the same terms.",
        ]
    ]
    start: NotRequired[Annotated[Natural, "The start that a schedule must give it."]]
    stage: NotRequired[Annotated[Natural, "The stage that a schedule must give it."]]
    cycle: NotRequired[
        Annotated[Natural, "The cycle, start modulo II, that a schedule must give it."]
    ]
    before: NotRequired[
        Annotated[list[Text], "Operations of the same iteration that start after it."]
    ]


class LoopOp(TypedDict):
    """`op` of a loop document."""

    name: Text
    kind: Annotated[Text, "The opcode."]
    operands: NotRequired[list[LoopOperand]]
    results: NotRequired[list[Text]]
    reads: NotRequired[list[StorageAccess]]
    writes: NotRequired[list[Text]]
    uses: NotRequired[
        Annotated[list[SlotUse], "What it holds; the machine says where this is left out."]
    ]
    demands: NotRequired[list[PoolDemand]]
    latency: NotRequired[
        Annotated[Natural, "When its result is ready; the machine says where this is left out."]
    ]
    encoding: NotRequired[Text]
    facts: NotRequired[Facts]
    constraint: NotRequired[OpConstraint]
    agent: NotRequired[Annotated[Text, "Who issues it, where that is not left to the machine."]]
    parent: NotRequired[Text]


class LoopDependence(TypedDict):
    """`dependence` of a loop document."""

    src: Text
    dst: Text
    latency: Natural
    distance: NotRequired[Natural]
    kind: NotRequired[Literal["flow", "anti", "output", "memory", "order"]]
    via: NotRequired[Text]


class LoopDocument(TypedDict):
    """A loop, as Stretto reads and writes it."""

    schema: Literal["stretto.loop/1"]
    name: Text
    machine: NotRequired[
        Annotated[Text, "The machine it is written for, unless the user says otherwise."]
    ]
    slots: NotRequired[Annotated[list[Text], "Exclusive slots of the loop's own."]]
    force_serial: NotRequired[bool]
    values: NotRequired[list[LoopValue]]
    storages: NotRequired[list[LoopStorage]]
    ops: list[LoopOp]
    dependences: NotRequired[list[LoopDependence]]
