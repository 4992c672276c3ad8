"""Findings in Gluon kernels."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stretto.schemas.values import Natural, Where


class Site(TypedDict):
    """`finding.site` of a check document."""

    file: str
    line: Natural
    column: Natural
    callers: Annotated[list[int], "Lines that called the function it is in, the nearest first"]


class MemoryAccess(TypedDict):
    """`finding.first` of a check document."""

    agent: Annotated[str, "The partition"]
    what: str
    site: Site
    turn: Annotated[Natural, "How often the agent had been there before: the iteration, in a loop"]
    proxy: Literal["generic", "copy", "async"]


class ExcerptStep(TypedDict):
    """`finding.excerpt.step` of a check document."""

    number: Annotated[Natural, "Its place in the whole run"]
    agent: str
    what: str
    slot: Annotated[str, "The slots or the barrier that it touches"]
    site: Site
    turn: Natural
    accused: Annotated[bool, "Whether the finding is about it"]


class ExcerptOrder(TypedDict):
    """The wait `second` heard of `first`; places in `steps`."""

    first: Natural
    second: Natural
    barrier: str


class Excerpt(TypedDict):
    """Steps of a run, in its order, and who heard of whom."""

    steps: list[ExcerptStep]
    orders: list[ExcerptOrder]
    total: Annotated[Natural, "Steps of the whole run"]


class Finding(TypedDict):
    """`finding` of a check document."""

    rule: str
    level: Literal["error", "note"]
    site: Site
    message: str
    slot: Annotated[str, "The memory or barrier it is about"]
    first: MemoryAccess | None
    second: MemoryAccess | None
    barrier: Annotated[str, "Which would order the two accesses, and how"]
    agents: list[str]
    details: list[str]
    hint: str
    launch: str
    seed: Natural
    excerpt: Annotated[Excerpt | None, "What was run around it; null where nothing was"]


class CheckLoop(TypedDict):
    """`coverage.loop` of a check document."""

    file: str
    line: int
    column: int
    trips: Annotated[list[Natural], "Trip counts that were run"]


class Coverage(TypedDict):
    """`coverage` of a check document."""

    launches: list[str]
    seeds: list[int]
    programs: Annotated[Natural, "Programs that were run, one for each seed"]
    loops: list[CheckLoop]
    depths: Annotated[list[int], "Slots of the rings that kernels allocate"]
    left_out: list[str]


class CheckDocument(TypedDict):
    """What is wrong with the kernels of a file, and what was not covered."""

    schema: Literal["stretto.check/1"]
    success: Annotated[bool, "No finding but notes; with --strict none at all"]
    file: str
    findings: list[Finding]
    coverage: Coverage
    stopped: Annotated[bool, "Whether the time limit ended it"]
    seconds: Annotated[
        Annotated[float, Where(minimum=0)], "The one field that may differ between runs"
    ]
