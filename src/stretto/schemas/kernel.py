"""Kernels: lowered, emitted, pipelined at a launch, tuned."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from stretto.schemas.values import Natural, Positive, Where


class EmittedLoop(TypedDict):
    """`loop` of a emitted document."""

    name: str
    ii: Positive
    stage_count: Positive


class EmittedDocument(TypedDict):
    """A kernel, as source for another compiler."""

    schema: Literal["stretto.emitted/1"]
    success: Literal[True]
    kernel: str
    machine: str
    machine_why: Annotated[
        str,
        "why it is this machine: as asked, named by the loop, the target of a kernel, or a default",
    ]
    mode: Literal["specialized", "unspecialized"]
    consumers: Annotated[Positive, "warpgroups that compute"]
    warps: Annotated[Positive, "of the first agent"]
    maxnreg: Annotated[
        int | None, "registers a thread begins with, where agents share them out anew"
    ]
    bytes: Annotated[Natural, "of shared memory"]
    rings: Annotated[dict[str, Positive], "slots of each"]
    loops: list[EmittedLoop]
    source: str
    notes: list[str]
    stopped: Annotated[bool, "whether a time limit came before all was tried"]


class KernelDocument(TypedDict):
    """A kernel, lowered."""

    schema: Literal["stretto.kernel/1"]
    success: Literal[True]
    machine: str
    machine_why: Annotated[
        str,
        "why it is this machine: as asked, named by the loop, the target of a kernel, or a default",
    ]
    mlir: Annotated[str, "the whole kernel in nv_tileas"]
    notes: list[str]


class PipelinedKernel(TypedDict):
    """`made` of a pipeline document."""

    schema: Literal["stretto.pipeline/1"]
    success: Literal[True]
    kernel: str
    entry: Annotated[str, "the Gluon kernel in the source"]
    machine: str
    mode: Literal["specialized", "unspecialized"]
    consumers: Positive
    smem: Annotated[Natural, "bytes of shared memory; by the compiler, where it was asked"]
    spilled: Annotated[Natural, "bytes that the compiler stores because registers do not do"]
    warps: Annotated[Positive, "of the first agent"]
    maxnreg: Annotated[int | None, "registers a thread begins with"]
    rings: Annotated[dict[str, Positive], "slots of each"]
    writes: Annotated[list[str], "parameters that are written through"]
    notes: list[str]
    loops: Annotated[list[dict[str, Any]], "as in stretto.schedule/1"]
    source_sha256: Annotated[str, Where(pattern="^[0-9a-f]{64}$")]


class RefusedKernel(TypedDict):
    """`refused` of a pipeline document."""

    schema: Literal["stretto.pipeline/1"]
    success: Literal[False]
    kernel: str
    machine: str | None
    reason: str


class ChosenConfiguration(TypedDict):
    """`chosen` of a tuned document."""

    config: Natural
    consumers: Positive
    depth: Positive | None
    blocks: Literal["given", "longest", "persistent"]


class TunedDocument(TypedDict):
    """Which configuration a launch was given, and how the others were ranked."""

    schema: Literal["stretto.tuned/1"]
    kernel: str
    chosen: ChosenConfiguration
    measured_ms: list[float | None]
    failed: list[str]
    ranking: dict[str, Any]
