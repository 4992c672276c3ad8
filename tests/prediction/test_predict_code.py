"""Machine code: listings, the steady loops of agents in them, and how schedulers issue them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from stretto.cli.main import main
from stretto.emission import Emitted
from stretto.kernel import Value
from stretto.kernel.types import Scalar
from stretto.launching.compiling import Compiled
from stretto.machine import load_machine
from stretto.prediction.code.costs import CodeCosts, Kind, code_costs
from stretto.prediction.code.listing import Instruction, Listing, read_listing
from stretto.prediction.code.overwriting import overwritten
from stretto.prediction.code.pacing import paced
from stretto.prediction.code.steps import AgentCode, Issue, agents_in, issued, kind_of
from stretto.prediction.code.warps import Scheduler
from stretto.prediction.score import AgentScore, Beat, LoopScore, loops_in, scores_of
from stretto.prediction.timings import timings_of

H200 = load_machine("h200")
TEXT = """
.L_x_1:
        /*0100*/                   SHFL.BFLY PT, R17, R18, 0x2, 0x1f ;   /* 0x0c401f0012117f89 */
                                                                       /* 0x000e6400000e0000 */
        /*0110*/                   FMNMX R20, R18, R17, !PT ;            /* 0x0000001112147209 */
                                                                       /* 0x002fca0007800000 */
        /*0120*/              @!P2 BRA `(.L_x_1) ;                        /* 0xfffffffc00fca947 */
                                                                       /* 0x000fea000383ffff */
        /*0130*/                   EXIT ;                                 /* 0x000000000000794d */
                                                                       /* 0x000fea0003800000 */
"""


def costs() -> CodeCosts:
    found = code_costs(H200)
    assert found is not None
    return found


class Tiles:
    """Tiles that come at given times."""

    def __init__(self, **times: float) -> None:
        self.times = times
        self.handed_back: list[tuple[str, int, float]] = []

    def there(self, ring: str, turn: int) -> float | None:
        return self.times.get(f"{ring}{turn}", self.times.get(ring))

    def handed(self, ring: str, turn: int, at: float) -> None:
        self.handed_back.append((ring, turn, at))


def issue(
    kind: Kind,
    stall: int = 1,
    *,
    waits: tuple[int, ...] = (),
    made: int | None = None,
    **more: Any,
) -> Issue:
    return replace(Issue(kind, stall, waits, made, None), **more)


def instruction(
    name: str,
    operands: str = "",
    made: int | None = None,
    *,
    guarded: bool = False,
    stall: int = 1,
    waits: tuple[int, ...] = (),
) -> Instruction:
    return Instruction(name, operands, guarded, stall, waits, made, None)


def steps_of(
    *codes: tuple[Issue, ...], trips: int = 20, groups: int = 1, **tiles: float
) -> list[float]:
    """Cycles of a step of each agent, in the later half."""
    agents = [AgentCode(str(n), groups, 0, code, ()) for n, code in enumerate(codes)]
    ends = Scheduler(agents, Tiles(**tiles), costs(), 0.0).run(trips)
    assert ends is not None
    half = trips // 2
    return [(times[trips - 1] - times[half]) / (trips - 1 - half) for times in ends.values()]


# Listings ---------------------------------------------------------------------------------------


def test_a_listing_has_instructions_with_their_timing() -> None:
    listing = read_listing(TEXT)
    shuffle, highest, branch, _ = listing.instructions
    assert shuffle == Instruction(
        "SHFL.BFLY", "PT, R17, R18, 0x2, 0x1f", guarded=False, stall=2, waits=(), made=1, read=None
    )
    assert (highest.opcode, highest.stall, highest.waits) == ("FMNMX", 5, (1,))
    assert branch.guarded
    assert listing.labels == {".L_x_1": 0}
    assert listing.loops() == [listing.instructions[:3]]


@given(st.integers(0, 2**23 - 1))
def test_whatever_a_listing_says_of_barriers_a_scheduler_can_issue(control: int) -> None:
    word = f"/* 0x{control << 41:016x} */"
    listing = read_listing(TEXT.replace("/* 0x002fca0007800000 */", word))
    (loop,) = listing.loops()
    assert steps_of(issued(loop))[0] > 0


def test_a_product_of_no_columns_is_none_that_is_known() -> None:
    product = instruction("HGMMA.64x0x16.F32", "R24, R2, R24, gsb0")
    assert steps_of(issued([product])) == steps_of(issued([replace(product, name="HGMMA")]))


def test_only_innermost_loops_are_told() -> None:
    inner = (instruction("FADD"), instruction("BRA", "`(.L_x_2)", guarded=True))
    outer = (instruction("BRA", "`(.L_x_1)", guarded=True), instruction("BRA", "`(.L_x_1)"))
    code = (instruction("NOP"), *inner, *outer)
    listing = Listing(code, {".L_x_1": 0, ".L_x_2": 1})
    assert listing.loops() == [inner]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("FFMA.FTZ", Kind.ARITHMETIC), ("FMNMX", Kind.INTEGERS), ("MUFU.EX2", Kind.SPECIAL),
     ("SHFL.BFLY", Kind.SHARED), ("FSETP.GT.AND", Kind.PREDICATE), ("UIADD3", Kind.OTHER),
     ("WARPGROUP.ARRIVE", Kind.OTHER), ("WARPGROUP.DEPBAR.LE", Kind.SETTLE),
     ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Kind.FULL), ("SYNCS.ARRIVE.TRANS64", Kind.ARRIVE)],
)  # fmt: skip
def test_each_instruction_is_of_a_kind(name: str, kind: Kind) -> None:
    assert kind_of(instruction(name)) is kind


def written(instructions: Sequence[Instruction], labels: Mapping[str, int]) -> str:
    """As nvdisasm prints it."""
    lines: list[str] = []
    for number, one in enumerate(instructions):
        lines += [f"{label}:" for label, at in labels.items() if at == number]
        waits = sum(1 << barrier for barrier in one.waits)
        made, read = (7 if barrier is None else barrier for barrier in (one.made, one.read))
        control = one.stall | made << 5 | read << 8 | waits << 11
        told = f"{one.name} {one.operands}".strip()
        guard = "@!P0 " if one.guarded else ""
        lines += [
            f"        /*{number * 16:04x}*/                   {guard}{told} ;   /* 0x{0:016x} */",
            f"                                       /* 0x{control << 41:016x} */",
        ]
    return "\n".join(lines)


barriers = st.none() | st.integers(0, 5)
instructions = st.builds(
    Instruction,
    st.sampled_from(("FFMA", "MUFU.EX2", "SHFL.BFLY", "SYNCS.ARRIVE.TRANS64")),
    st.sampled_from(("", "R1, R2, R3", "P2, [UR4+0x200f0], R24")),
    st.booleans(),
    st.integers(1, 15),
    st.sets(st.integers(0, 5)).map(lambda found: tuple(sorted(found))),
    barriers,
    barriers,
)


@given(st.lists(instructions, max_size=20), st.integers(0, 19))
def test_what_is_written_is_read(code: list[Instruction], at: int) -> None:
    labels = {".L_x_3": at} if at < len(code) else {}
    assert read_listing(written(code, labels)) == Listing(tuple(code), labels)


# Schedulers -------------------------------------------------------------------------------------


def test_a_pipe_that_is_busy_holds_up_what_needs_it() -> None:
    end = issue(Kind.BRANCH, 1, last=True)
    (arithmetic,) = steps_of((*[issue(Kind.ARITHMETIC)] * 64, end))
    (integers,) = steps_of((*[issue(Kind.INTEGERS)] * 64, end))
    (special,) = steps_of((*[issue(Kind.SPECIAL)] * 64, end))
    branch = costs().branch
    assert arithmetic == 64 + 1 + branch
    assert integers == 2 * 63 + 1 + 1 + branch
    assert special == pytest.approx(8 * 64, abs=8)


def test_a_result_is_waited_for() -> None:
    shuffle = issue(Kind.SHARED, 2, made=1, shuffle=True)
    (one,) = steps_of((shuffle, issue(Kind.INTEGERS, 5, waits=(1,)), issue(Kind.BRANCH, last=True)))
    assert one == costs().shuffled + 5 + 1 + costs().branch


def test_two_warps_fill_each_others_pauses() -> None:
    chain = (*[issue(Kind.INTEGERS, 4)] * 16, issue(Kind.BRANCH, last=True))
    assert steps_of(chain, chain) == steps_of(chain) * 2


PRODUCT = issue(Kind.PRODUCT, cycles=64.0, bytes=4096.0, last=True)


def test_products_of_two_agents_take_turns() -> None:
    code = (PRODUCT, issue(Kind.SETTLE, left=0), issue(Kind.BRANCH, last=True))
    (alone,) = steps_of(code)
    both = steps_of(code, code)
    assert alone == pytest.approx(64 + costs().product, abs=8)
    assert min(both) >= 2 * (64 + costs().turn)


def test_what_products_write_others_cannot() -> None:
    """Of all results a running product leaves about a third to others; but not less than that."""
    writes = (*[issue(Kind.INTEGERS)] * 32, issue(Kind.BRANCH, last=True))
    forever = (*[PRODUCT] * 8, issue(Kind.SETTLE, left=1), issue(Kind.BRANCH, last=True))
    (alone,) = steps_of(writes)
    beside, products = steps_of(writes, forever, trips=40)
    assert beside > 1.5 * alone
    assert products == pytest.approx(8 * 64, rel=0.02)


def test_arithmetic_that_will_not_wait_holds_up_products() -> None:
    dense = (*[issue(Kind.ARITHMETIC)] * 64, issue(Kind.BRANCH, last=True))
    forever = (*[PRODUCT] * 8, issue(Kind.SETTLE, left=1), issue(Kind.BRANCH, last=True))
    beside, products = steps_of(dense, forever, trips=60)
    assert beside < 64 / costs().left
    assert products > 8 * 64 * 1.2


def test_shuffles_starve_beside_products_that_read_all_of_shared_memory() -> None:
    shuffles = (
        *[issue(Kind.SHARED, 2, made=1, shuffle=True), issue(Kind.INTEGERS, 5, waits=(1,))] * 4,
        issue(Kind.BRANCH, last=True),
    )

    def beside(read: float) -> float:
        product = replace(PRODUCT, bytes=64.0 * read)
        forever = (*[product] * 8, issue(Kind.SETTLE, left=1), issue(Kind.BRANCH, last=True))
        return steps_of(shuffles, forever, trips=30)[0]

    assert beside(64.0) < beside(96.0) < beside(128.0)


def test_a_tile_that_is_late_is_waited_for_where_it_is_needed() -> None:
    """A look at a barrier holds up what waits for it, not what stands between."""
    look = issue(Kind.FULL, 2, made=0, ring="k", stage=0)
    work = [issue(Kind.INTEGERS, 4)] * 50
    code = (look, *work, issue(Kind.BRANCH, waits=(0,), last=True))
    agent = AgentCode("a", 1, 0, code, ())
    (ends,) = (Scheduler([agent], Tiles(k=150.0), costs(), 0.0).run(1) or {}).values()
    assert ends[0] == pytest.approx(2 + 200, abs=2)
    (later,) = (Scheduler([agent], Tiles(k=500.0), costs(), 0.0).run(1) or {}).values()
    assert later[0] == 500.0 + costs().wake
    assert Scheduler([agent], Tiles(), costs(), 0.0).run(1) is None


def test_warps_of_an_agent_meet_before_one_arrives() -> None:
    tiles = Tiles()
    code = (issue(Kind.MEET), issue(Kind.ARRIVE, ring="k", stage=1), issue(Kind.BRANCH, last=True))
    Scheduler([AgentCode("a", 2, 3, code, ())], tiles, costs(), 0.0).run(2)
    assert [(ring, turn) for ring, turn, _ in tiles.handed_back[:2]] == [("k", 2), ("k", 3)]
    meet, more = costs().meet
    assert tiles.handed_back[0][2] >= meet + more - costs().spread[0]


# Whole loops ------------------------------------------------------------------------------------

NUMBER = Value(Scalar("i32"))
COMPUTE = (
    Beat("full", "", "k", 1), Beat("product", "scores", stage=1), Beat("settle", "", left=0),
    Beat("work", "softmax"), Beat("arrive", "", "k", 1),
)  # fmt: skip
COPY = (Beat("free", "", "k"), Beat("copy", "", "k", bytes=32768))


def loop(beats: tuple[Beat, ...], first: int) -> LoopScore:
    return LoopScore(0, NUMBER, NUMBER, NUMBER, (), beats, (), first, 0, 2, beats)


def score(depth_of_compute: int = 1) -> list[AgentScore]:
    return [
        AgentScore("compute", 4, (loop(COMPUTE, depth_of_compute),)),
        AgentScore("copy", 1, (loop(COPY, 0),)),
    ]


def code_of(place: str = "0x0", *, waits: int = 1) -> Listing:
    """A step of the agent, once for each way of its loop: singly, and steady."""
    step = [
        instruction("BAR.SYNC", f"{place}, 0x80"),
        *[instruction("SYNCS.PHASECHK.TRYWAIT", "P2, [UR4]", 1)] * waits,
        instruction("HGMMA.64x128x16.F32", "R24, gdesc[UR4], R24, gsb0", waits=(1,)),
        instruction("WARPGROUP.DEPBAR.LE", "gsb0, 0x0"),
        *[instruction("FMNMX", stall=4)] * 100,
        instruction("SYNCS.ARRIVE.TRANS64", "RZ, [UR4], RZ"),
    ]
    back = [instruction("BRA", f"`(.L_x_{n})", guarded=True) for n in (1, 2)]
    code = (*step, back[0], *step, back[1])
    return Listing(code, {".L_x_1": 0, ".L_x_2": len(step) + 1})


def cycles(listing: Listing, depth: int, blocks: int = 1) -> float | None:
    machine = timings_of(H200).costs
    return paced(listing, score(), 0, {"k": depth}, {}, (costs(), machine), blocks)


def test_the_pace_of_a_loop_is_that_of_its_code_or_of_its_copies() -> None:
    starved, fed = cycles(code_of(), 1), cycles(code_of(), 6)
    assert starved is not None
    assert fed is not None
    # Of a ring of one slot a copy from memory lies in each step; of six the code alone.
    machine = timings_of(H200).costs
    assert starved > machine.latency["hbm"] + 400
    assert fed >= 64 + costs().product + 100 * 4
    assert fed < starved


def test_two_blocks_share_an_sm() -> None:
    one, two = cycles(code_of(), 6), cycles(code_of(), 6, blocks=2)
    assert one is not None
    assert two is not None
    assert one <= two < 2 * one


def test_code_that_is_not_of_the_score_is_not_taken() -> None:
    assert cycles(code_of(waits=2), 6) is None
    assert agents_in(Listing((), {}), score(), 0) is None
    stores = (*COMPUTE, Beat("store", "out"))
    other = [AgentScore("compute", 4, (loop(stores, 1),)), score()[1]]
    assert agents_in(code_of(), other, 0) is None


@given(st.text(max_size=400) | st.sampled_from((TEXT[:200], TEXT.replace("0x0", "x"))))
def test_whatever_a_disassembler_prints_is_read_or_passed_over(text: str) -> None:
    machine = timings_of(H200).costs
    assert paced(read_listing(text), score(), 0, {"k": 2}, {}, (costs(), machine)) is None


def test_an_agent_is_known_by_where_its_warps_meet() -> None:
    agents = agents_in(code_of("0x2"), score(), 0)
    assert agents is not None
    (found,) = agents
    assert (found.agent, found.first) == ("compute", 1)
    assert [one.ring for one in found.issues if one.ring] == ["k", "k"]
    assert found.arrives == (("k", 1),)


def test_a_machine_that_says_nothing_of_code_has_no_costs() -> None:
    assert code_costs(load_machine("blackwell")) is None


def test_copies_and_meetings_vary_and_are_the_same_each_time() -> None:
    assert cycles(code_of(), 2) == cycles(code_of(), 2)
    machine = timings_of(H200).costs
    still = replace(costs(), spread=(0.0, 0.0))
    assert cycles(code_of(), 2) != paced(code_of(), score(), 0, {"k": 2}, {}, (still, machine))


# Registers ------------------------------------------------------------------------------------


def loop_of(*told: str) -> Listing:
    """A loop of instructions, as they are written."""
    code = [instruction(name, operands) for name, _, operands in (t.partition(" ") for t in told)]
    return Listing((*code, instruction("BRA", "`(.L_x_1)", guarded=True)), {".L_x_1": 0})


FIRST = "HGMMA.64x64x16.F32 R24, R88, gdesc[UR4], RZ, !UPT, gsb0"
SECOND = "HGMMA.64x64x16.F32 R56, R88, gdesc[UR8].tnspB, R56, gsb0"
PACKED = "F2FP.F16.F32.PACK_AB R88, R106, R19"


@pytest.mark.parametrize(
    ("loop", "wrong"),
    [
        # What is read before the loop is gone after the first step.
        ((FIRST, "FMNMX R88, R28, R11, !PT", PACKED, SECOND), True),
        ((FIRST, "SHFL.BFLY PT, R88, R13, 0x2, 0x1f", SECOND), True),
        # It is restored, stands elsewhere, or is in shared memory.
        (("MOV R88, R112", FIRST, PACKED, SECOND), False),
        ((FIRST, PACKED.replace("R88", "R92"), SECOND.replace("R88", "R92")), False),
        ((FIRST.replace("R88, gdesc", "gdesc"), PACKED, SECOND), False),
        # A step has the factor of its second product from the step before.
        ((SECOND, PACKED), False),
        ((FIRST.replace("R88", "R120"), SECOND, "FADD R1, R88, R2", PACKED), False),
        ((FIRST, "STS [R88], R88", SECOND.replace("R88", "R92")), False),
    ],
)
def test_a_factor_that_an_assembler_overwrites_is_seen(loop: tuple[str, ...], wrong: bool) -> None:
    assert overwritten(loop_of(*loop)) is wrong


def test_a_kernel_whose_factor_is_overwritten_is_not_taken() -> None:
    fine = Compiled(0, (), 0, 168)
    assert fine.clean
    assert not replace(fine, overwritten=True).clean


# Whole kernels ----------------------------------------------------------------------------------

MATMUL = Path(__file__).parents[2] / "examples" / "triton" / "matmul_persistent.ttir"
SIZES = dict.fromkeys("MNK", 8192)
LONG = 500
"""Instructions of arithmetic that an assembler is made to have put into each step."""


def assembled_with(
    arithmetic: int, spilled: int = 0, name: str = "FMNMX"
) -> Callable[[Emitted], Compiled]:
    """An assembler that writes what a score says, with so much arithmetic in each step."""

    def step(beats: Sequence[Beat], place: int) -> list[Instruction]:
        found = [
            instruction("BAR.SYNC", f"{place:#x}, 0x80"),
            *[instruction(name, stall=4)] * arithmetic,
        ]
        for beat in beats:
            if beat.kind == "full":
                found.append(instruction("SYNCS.PHASECHK.TRYWAIT", "P2, [UR4]", 1))
            elif beat.kind == "arrive":
                found.append(instruction("SYNCS.ARRIVE.TRANS64", "RZ, [UR4], RZ"))
            elif beat.kind == "product":
                found.append(
                    instruction("HGMMA.64x256x16.F32", "R24, gdesc[UR4], R24, gsb0", waits=(1,))
                )
            elif beat.kind == "settle":
                found.append(instruction("WARPGROUP.DEPBAR.LE", f"gsb0, {beat.left:#x}"))
        return found

    def assemble(emitted: Emitted) -> Compiled:
        code: list[Instruction] = []
        labels: dict[str, int] = {}
        for place, agent in enumerate(scores_of(emitted.program)):
            for loop in loops_in(agent.parts):
                for beats in (loop.singly, loop.kernel):
                    label = f".L_x_{len(labels)}"
                    labels[label] = len(code)
                    code += step(beats, place)
                    code.append(instruction("BRA", f"`({label})", guarded=True))
        return Compiled(spilled, (), 0, 168, written(code, labels))

    return assemble


def test_a_kernel_is_predicted_by_its_machine_code_where_there_is_some() -> None:
    def predicted(assemble: Callable[[Emitted], Compiled] | None) -> stretto.KernelPrediction:
        return stretto.predict(
            MATMUL, H200, grid=(132,), arguments=SIZES, consumers=1, depth=3, assemble=assemble
        )

    tiles, coded = predicted(None), predicted(assembled_with(LONG))
    assert not tiles.prediction.loops[0].coded
    assert coded.prediction.loops[0].coded
    assert coded.prediction.loops[0].cycles >= LONG * 4
    assert coded.prediction.seconds > tiles.prediction.seconds
    # What stands around the loop is the same.
    assert coded.prediction.fill == pytest.approx(tiles.prediction.fill, rel=0.01)
    assert coded.to_json()["predictions"][0]["loops"][0]["by_machine_code"]
    told = "\n".join(coded.to_text())
    assert "by its machine code" in told
    for one in (tiles, coded):
        (loop,) = one.prediction.loops
        for parts in (*loop.spent.values(), loop.kinds):
            assert sum(parts.values()) == pytest.approx(loop.cycles, abs=1.0)
        assert loop.bound in {**loop.units, **loop.kinds}
    assert re.search(rf"^    {coded.prediction.bound} +[\d,]+ +\d+%", told, re.MULTILINE)
    # Code that nobody recognizes is of no use, but what the assembler says of registers is.
    other = predicted(lambda emitted: replace(assembled_with(1)(emitted), code="", spilled=8))
    assert other.prediction.loops[0].cycles == tiles.prediction.loops[0].cycles
    assert other.prediction.spills


def test_where_agents_share_an_sm_the_mean_of_code_and_tiles_is_told() -> None:
    def cycles(consumers: int, arithmetic: int, name: str = "FMNMX") -> float:
        told = stretto.predict(
            MATMUL, H200, grid=(132,), arguments=SIZES, consumers=consumers, depth=3,
            assemble=assembled_with(arithmetic, name=name),
        )  # fmt: skip
        return told.prediction.loops[0].cycles

    # Moves of both agents are the assembler's own, of two cycles each, and stand beside tiles too.
    moved = cycles(2, LONG, "MOV") - cycles(2, LONG)
    assert moved == pytest.approx(2 * LONG * 2 / 2, rel=0.01)
    # Code of which tiles know nothing: two agents issue it side by side, as fast as one.
    one, two = (cycles(n, 2 * LONG) - cycles(n, LONG) for n in (1, 2))
    assert one == pytest.approx(4 * LONG, rel=0.01)
    assert two == pytest.approx(one / 2, rel=0.01)


def test_a_ranking_goes_by_what_the_assembler_made_of_the_first() -> None:
    def first(slow: int) -> int:
        """Consumers of the first, where kernels of so many agents have long steps."""

        def assemble(emitted: Emitted) -> Compiled:
            return assembled_with(LONG if len(scores_of(emitted.program)) == slow else 1)(emitted)

        problems = [(MATMUL, (132,))]
        found = stretto.rank(problems, H200, arguments=SIZES, depths=(4,), assemble=assemble).found
        known = [one.prediction.loops[0].coded for one in found]
        assert known == sorted(known, reverse=True)
        assert {one.made.consumers for one in found if one.prediction.loops[0].coded} == {1, 2}
        return found[0].made.consumers

    assert (first(2), first(3)) == (2, 1)


def test_the_first_are_settled_as_a_launch_would_have_them() -> None:
    """Of the schedules of a configuration the first that the assembler keeps to is predicted."""
    refused: list[str] = []

    def assemble(emitted: Emitted) -> Compiled:
        spilled = 0 if refused else 8
        refused.append(emitted.source)
        return assembled_with(1, spilled)(emitted)

    problems = [(MATMUL, (132,))]
    ranking = stretto.rank(
        problems, H200, arguments=SIZES, depths=(3,), consumers=(2,), keep=1, assemble=assemble,
        settle=1,
    )  # fmt: skip
    (one,) = ranking.found
    spills = refused[0]

    def again(emitted: Emitted) -> Compiled:
        return assembled_with(1, 8 if emitted.source == spills else 0)(emitted)

    made = stretto.emit(MATMUL, H200, consumers=2, depth=3, assemble=again)
    assert one.made.source == made.source
    assert not one.prediction.spills


def test_without_triton_the_command_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.launching.compiling.can_compile", lambda: False)
    assert main(["predict", str(MATMUL), "--grid", "132", "--assembled"]) == 1
    assert "pip install stretto[gpu]" in capsys.readouterr().err


def test_what_triton_says_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Emitted) -> Compiled:
        raise ValueError("no such\nlayout")

    monkeypatch.setattr("stretto.launching.compiling.can_compile", lambda: True)
    monkeypatch.setattr("stretto.launching.compiling.compile_emitted", fails)
    asked = ["predict", str(MATMUL), "--grid", "132", "--assembled", "--consumers", "1"]
    assert main([*asked, *(f"--argument={name}=8192" for name in "MNK")]) == 1
    assert "Triton does not compile `matmul_persistent`: no such layout" in capsys.readouterr().err
