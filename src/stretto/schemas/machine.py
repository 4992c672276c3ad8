"""Machines."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stretto.schemas.values import Natural, Positive, Unit, Where


class CalibrationDocument(TypedDict):
    """A machine file, from what microbenchmarks measured."""

    schema: Literal["stretto.calibration/1"]
    success: Literal[True]
    toml: Annotated[str, "the text of the file"]


class MachineSlot(TypedDict):
    """`slot` of a machine document."""

    id: Positive
    name: str
    capacity: Annotated[int | None, "null: unlimited."]
    kind: str
    role: str
    primary: bool
    fusion_cap: Positive
    anchor: int | None
    source: str


class MachinePool(TypedDict):
    """`pool` of a machine document."""

    name: str
    cap: Positive
    role: str
    source: str


class MachineBudget(TypedDict):
    """`budget` of a machine document."""

    space: str
    bytes: Annotated[int | None, "null: lifted, see warnings."]
    unit: Positive
    source: str
    barrier: Annotated[Natural, "Bytes that one barrier of a pipe takes of it."]


class MachineProduct(TypedDict):
    """`product` of a machine document."""

    name: str
    opcode: str
    accumulator: str
    a: list[str]
    b: list[str]
    types: Annotated[
        list[Annotated[list[str], Where(minItems=3, maxItems=3)]],
        "Elements of the left factor, the right one and the sum; empty: any.",
    ]
    rows: Annotated[Positive, "Of what the rows of its left factor are a multiple."]
    columns: Annotated[Positive, "Likewise the columns of its right factor."]
    depth: Annotated[Positive, "Bits of what a row of its left factor is a multiple."]
    repeats: Annotated[
        bool,
        "Whether fewer rows and columns will do, repeated to as many as `rows` and `columns`.",
    ]
    batches: Annotated[bool, "Whether it multiplies several pairs of matrices at a time."]
    wait: Annotated[str, "The opcode that waits for it; empty where nobody has to."]
    in_step: Annotated[
        bool,
        "Whether a sum that threads read must be waited for in the step that issued the product.",
    ]
    held: Annotated[
        Natural,
        "Registers of a thread that sums and left factors of a loop's products may "
        "take for a left factor that no step changes to be held in them as well; "
        "0: none is.",
    ]
    held_of_tiles: Annotated[Natural, "Likewise in a block that goes over several tiles."]
    source: str


class MachineAgent(TypedDict):
    """`agent` of a machine document."""

    name: str
    issues: list[Literal["tma", "mma", "simt"]]
    warps: Positive
    registers: Annotated[Positive, "Of 32 bits, for each thread."]
    replicas: Positive
    addresses: Annotated[Natural, "Registers of each thread that hold no tiles."]
    crowded: Annotated[
        list[Positive],
        "Registers of each thread with one replica more than `replicas`, with two more, and so on.",
    ]
    source: str


class MachineUse(TypedDict):
    """`encoding.use` of a machine document."""

    slot: str
    offset: Natural
    duration: Annotated[int | str, "A number, or the formula of the machine file."]
    occupancy: Positive


class EncodingNeed(TypedDict):
    """`encoding.need` of a machine document."""

    condition: str
    why: str


class Encoding(TypedDict):
    """`encoding` of a machine document."""

    name: str
    opcodes: list[str]
    tag: int | None
    charges: Annotated[list[Natural], "Tags it is charged under where no one tag is its own."]
    uses: list[MachineUse]
    latency: Annotated[int | str, "A number, or the formula of the machine file."]
    demands: dict[str, Annotated[int | str, "A number, or the formula of the machine file."]]
    when: str | None
    needs: list[EncodingNeed]
    source: str
    note: str


class LatencyFamily(TypedDict):
    """`family` of a machine document."""

    name: str
    latency: int | None
    slots: list[str]
    source: str


class OpTag(TypedDict):
    """`tag` of a machine document."""

    tag: Natural
    latency: Natural
    slots: list[str]
    family: str
    source: str


class CapacityCell(TypedDict):
    """`cell` of a machine document."""

    index: Natural
    value: Natural
    meaning: str
    enforced_by: str
    source: str


class NamedWeight(TypedDict):
    """`tier2` of a machine document."""

    name: str
    values: list[Natural]
    meaning: str
    source: str


class MachineDocument(TypedDict):
    """A machine, as `stretto machines NAME --json` prints it."""

    schema: Literal["stretto.machine/1"]
    success: Literal[True]
    name: str
    title: str
    slots: list[MachineSlot]
    pools: list[MachinePool]
    demands: dict[str, str]
    budgets: list[MachineBudget]
    products: list[MachineProduct]
    agents: list[MachineAgent]
    encodings: list[Encoding]
    families: list[LatencyFamily]
    tags: list[OpTag]
    cells: list[CapacityCell]
    tier2: list[NamedWeight]
    anchors: list[NamedWeight]
    ceilings: list[NamedWeight]
    fences: list[NamedWeight]
    pipelining: list[str] | None
    fallback: str | None
    warnings: list[str]
    costs: list[NamedWeight]
    limits: list[NamedWeight]
    timings: list[NamedWeight]
    measured: str
    unit: Unit


class ListedMachine(TypedDict):
    """`machine` of a machines document."""

    name: str
    title: str
    slots: Positive
    warnings: list[str]


class MachinesDocument(TypedDict):
    """The machines that ship."""

    schema: Literal["stretto.machines/1"]
    success: Literal[True]
    machines: list[ListedMachine]
