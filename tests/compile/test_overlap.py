"""What of an emitted kernel overlaps, which of its candidates is taken, and the ways it may go."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from stretto.api.emitting import emit
from stretto.compile.candidates import Emitter
from stretto.compile.choice import chosen
from stretto.compile.sources import kernels_of
from stretto.compile.versions import Versions
from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.compiling import Compiled
from stretto.launching.launcher import Teller
from stretto.launching.making import NOTHING, make
from stretto.launching.storing import Store
from stretto.machine import load_machine
from stretto.program.errors import EmitError

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"


@pytest.mark.parametrize(
    ("name", "mode", "by"),
    [
        ("matmul_descriptors", None, "agents"),
        ("matmul_descriptors", "unspecialized", "copies"),
        ("layer_norm", None, "together"),
        ("softmax", None, "loads"),
    ],
)
def test_what_overlaps(name: str, mode: str | None, by: str):
    assert emit(EXAMPLES / f"{name}.ttir", "h200", mode=mode).overlap == by  # pyright: ignore[reportArgumentType]


def test_of_candidates_that_are_about_as_fast_one_that_overlaps_is_taken():
    emitter = Emitter(EXAMPLES / "softmax.ttir", "h200")
    made = emitter.candidates()
    (flat, *_) = [one for one in made if not one.overlap]
    ahead = next(one for one in made if one.overlap)
    assert flat.pace is not None
    assert ahead.pace is not None
    best = replace(flat, pace=replace(flat.pace, cycles=100.0))
    near = replace(ahead, pace=replace(ahead.pace, cycles=110.0))
    far = replace(ahead, pace=replace(ahead.pace, cycles=160.0))
    assert chosen([best, near], emitter.machine) is near
    assert chosen([best, far], emitter.machine) is best


@pytest.mark.parametrize(
    ("spilled", "remarks", "told"),
    [(8, (), "threads spill 8 bytes"), (0, ("(C7514)",), "ptxas cannot run products as written")],
)
def test_why_nothing_overlaps_is_what_the_assembler_said(
    spilled: int, remarks: tuple[str, ...], told: str
):
    emitter = Emitter(EXAMPLES / "softmax.ttir", "h200")
    made = emitter.candidates()
    flat = {one.source for one in made if not one.overlap}

    def assemble(emitted: Emitted) -> Compiled:
        bad = emitted.source not in flat
        return Compiled(spilled * bad, remarks * bad, smem=0, registers=64)

    taken = chosen(made, emitter.machine, assemble)
    assert not taken.overlap
    assert taken.notes[-1] == f"nothing of it overlaps: with a step more in flight, {told}"


def test_one_group_of_warps_has_what_agents_cannot(monkeypatch: pytest.MonkeyPatch):
    drafted = Versions.draft

    def refused(self: Versions, consumers: int, placed: Mapping[str, str]) -> None:
        if self.mode == "specialized":
            raise EmitError("agents cannot have it")
        drafted(self, consumers, placed)

    monkeypatch.setattr(Versions, "draft", refused)
    file = EXAMPLES / "matmul_descriptors.ttir"
    made = emit(file, "h200")
    assert made.mode == "unspecialized"
    assert any("agents cannot have it" in note for note in made.notes)
    for asked in ({"mode": "specialized"}, {"consumers": 2}):
        with pytest.raises(StrettoError, match="agents cannot have it"):
            emit(file, "h200", **asked)  # pyright: ignore[reportArgumentType]


def test_a_kernel_with_nothing_to_overlap_is_left_alone_without_a_word():
    (kernel,) = kernels_of("k.ttir", "module {\n  tt.func public @f() {\n    tt.return\n  }\n}\n")
    asked = Asked(machine=load_machine("h200"))
    with pytest.raises(StrettoError, match="nothing of it can overlap") as refused:
        make("f", "0", lambda: kernel, asked, Store(Path("nowhere")))
    told = Teller("f", strict=False, instead="Triton").refuse(
        refused.value
    )  # a warning is an error
    assert told.reason == NOTHING


def assembled(spilled: int) -> Compiled:
    return Compiled(spilled, (), 1_000, 128)


def test_what_the_compiler_does_not_take_is_passed_over():
    emitter = Emitter(EXAMPLES / "matmul_descriptors.ttir", "h200")
    made = emitter.candidates()
    assert len(made) > 1
    asked: list[str] = []

    def assemble(emitted: Emitted) -> Compiled:
        asked.append(emitted.source)
        if len(asked) == 1:
            raise ValueError("no such layout")
        return assembled(0)

    assert chosen(made, emitter.machine, assemble).source == asked[1]

    def never(_: Emitted) -> Compiled:
        raise ValueError("no such layout")

    with pytest.raises(ValueError, match="no such layout"):
        chosen(made, emitter.machine, never)


def test_of_those_that_spill_the_one_with_the_fewest_bytes_is_taken():
    emitter = Emitter(EXAMPLES / "matmul_descriptors.ttir", "h200")
    made = emitter.candidates()
    bytes = iter([1428, 252, *range(2000, 2100)])
    taken = chosen(made, emitter.machine, lambda _: assembled(next(bytes)))
    assert taken.assembled is not None
    assert taken.assembled.spilled == 252


def test_what_spills_when_loaded_ahead_is_tried_with_more_warps():
    emitter = Emitter(EXAMPLES / "softmax.ttir", "h200")
    made = emitter.candidates()
    ahead = {one.source for one in made if one.overlap}
    (warps,) = {one.emitted.warps for one in made}

    def assemble(emitted: Emitted) -> Compiled:
        return assembled(8 if emitted.source in ahead else 0)

    taken = chosen(made, emitter.machine, assemble, emitter.otherwise)
    assert taken.overlap
    assert taken.emitted.warps == 2 * warps
    assert any(f"with {2 * warps} warps" in note for note in taken.notes)
    plain = chosen(made, emitter.machine, assemble)
    assert not plain.overlap
    assert any("threads spill 8 bytes" in note for note in plain.notes)
