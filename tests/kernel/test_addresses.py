"""What follows from the addresses of a module: facts that hold, and that decide."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from xdsl.context import Context

import stretto
from stretto.diagnostics import MlirError
from stretto.frontends.triton import read_ttir
from stretto.ir import read_mlir
from stretto.ir.dialect.types import shape_of
from stretto.ir.kernels.writing import lowered_module
from stretto.ir.loops import read_loops
from stretto.ir.loops.module import Addresses
from stretto.ir.loops.writer import print_module
from stretto.ir.parsing import Parsed, parse_module
from stretto.ir.passes.axis_analysis import FACTS, AxisAnalysis
from stretto.ir.telling import listening
from stretto.loop import Facts, Loop, LoopError, Op
from stretto.machine import load_machine
from stretto.resources.prepare import prepare

EXAMPLES = Path(__file__).parents[2] / "examples"


def kernel(
    body: str,
    *,
    array: str = "4096x4096xf16",
    argument: str = "",
    tile: str = "64x64xf16",
    before: str = "",
    upper: int = 4096,
    step: int = 64,
) -> str:
    return f"""
!smem = !nv_tileas.smem_ref<{tile}>
!global = !nv_tileas.tensor<{array}, global>
!pointers = tensor<64x!nv_tileas.ptr<f16>>
func.func @k(%A: !global {argument}, %p: !nv_tileas.ptr<f16> {argument}, %n: i32) {{
  %zero = arith.constant 0 : i32
  %step = arith.constant {step} : i32
  %upper = arith.constant {upper} : i32
  {before}
  scf.for %i = %zero to %upper step %step : i32 {{
    {body}
  }}
  func.return
}}
"""


def only(text: str, machine: str = "blackwell") -> Loop:
    (loop,), _ = read_mlir("k.mlir", text, machine)
    return loop


def classified(text: str) -> tuple[Op, str]:
    """The first access, with its costs, and what was said of it."""
    ready = prepare(only(text), "blackwell")
    said = [note.text for note in ready.notes if "cannot be" in note.text]
    access = next(op for op in ready.loop.ops if not op.kind.startswith(("arith", "splat", "off")))
    return access, "; ".join(said)


TMA = "%t = nv_tileas.async.tiled_tma_load %A[%zero, %i] : !global -> !smem"
LOAD = "%t = nv_tileas.load %A[%zero, %i] : !global -> tensor<64x64xf16>"


@pytest.mark.parametrize(
    ("array", "argument", "encoding", "why"),
    [
        ("4096x4096xf16", "", "tma_load", ""),
        ("4096x?xf16", "", "tma_load", ""),
        ("4096x4099xf16", "", "tma_load_by_threads", "not divisible by 16 bytes (divisibility 2)"),
        ("4096x4100xf16", "", "tma_load_by_threads", "not divisible by 16 bytes (divisibility 8)"),
        ("4096x4096xf16", "{stretto.divisibility = 8}", "tma_load_by_threads", "divisibility 8"),
        ("4096x4096xf16", "{tt.divisibility = 16 : i32}", "tma_load", ""),
    ],
)
def test_rows_and_promises_decide_about_descriptors(
    array: str, argument: str, encoding: str, why: str
) -> None:
    op, said = classified(kernel(TMA, array=array, argument=argument))
    assert op.encoding == encoding
    assert why in said


@pytest.mark.parametrize("machine", ["b200-pipes", "h200"])
def test_where_threads_do_no_copies_of_tiles_a_misaligned_one_is_refused(machine: str) -> None:
    assert only(kernel(TMA), machine).op("t").facts.divisibility == 16
    with pytest.raises(MlirError) as caught:
        only(kernel(TMA, array="4096x4099xf16"), machine)
    (told,) = caught.value.diagnostics
    assert (told.line, told.column) == (11, 10)
    assert told.message == (
        "`t` (async.tiled_tma_load): cannot be tma_load: the address is not divisible by 16 bytes "
        "(divisibility 2)"
    )


def test_a_coordinate_need_not_be_aligned_for_a_descriptor() -> None:
    op, _ = classified(kernel(TMA, step=1))
    assert op.encoding == "tma_load"
    assert op.facts == Facts(64, 16, 1, (0, 4095), memory_range=(0, 64 * 8192 - 1))


@pytest.mark.parametrize(
    ("step", "upper", "array", "contiguity", "divisibility", "encoding"),
    [
        (64, 4096, "4096x4096xf16", 64, 16, "load"),
        (2, 4096, "4096x4096xf16", 2, 4, "load"),  # the last tile hangs over the edge
        (1, 4033, "4096x4096xf16", 64, 2, "load_by_elements"),
        (1, 4096, "4096x4096xf16", 1, 2, "load_by_elements"),
        (64, 4096, "4096x4099xf16", 64, 2, "load_by_elements"),
    ],
)
def test_threads_go_by_addresses_and_edges(
    step: int, upper: int, array: str, contiguity: int, divisibility: int, encoding: str
) -> None:
    op, _ = classified(kernel(LOAD, step=step, upper=upper, array=array))
    assert (op.facts.contiguity, op.facts.divisibility) == (contiguity, divisibility)
    assert op.encoding == encoding


_POINTERS = """
    %r = nv_tileas.range {start = 0 : i64, end = 64 : i64} : tensor<64xi32>
    %s = nv_tileas.splat %p : !nv_tileas.ptr<f16> -> !pointers
    %b = nv_tileas.splat %i : i32 -> tensor<64xi32>
    %o = arith.addi %b, %r : tensor<64xi32>
    %a = nv_tileas.offset %s, %o : !pointers, tensor<64xi32> -> !pointers
    %t = nv_tileas.pointer.load %a : !pointers -> tensor<64xf16>
"""


@pytest.mark.parametrize(
    ("argument", "step", "encoding"),
    [
        ("{stretto.divisibility = 16}", 8, "load"),
        ("{stretto.divisibility = 16}", 1, "load_by_elements"),
        ("{stretto.divisibility = 2}", 8, "load_by_elements"),
    ],
)
def test_arguments_say_what_addresses_are_multiples_of(
    argument: str, step: int, encoding: str
) -> None:
    text = kernel(_POINTERS, argument=argument, step=step)
    ready = prepare(only(text), "blackwell")
    (op,) = (op for op in ready.loop.ops if op.kind == "pointer.load")
    assert op.encoding == encoding
    assert op.facts.contiguity == 64
    last = (4095 // step * step + 64) * 2 - 1
    assert op.facts.memory_range == (0, last)


@pytest.mark.parametrize("seed", range(150))
def test_what_is_claimed_of_a_tile_holds_of_every_one(seed: int) -> None:
    """Laid out byte by byte: each tile that the loop reads, as far as it is in the array."""
    pick = random.Random(seed)
    rows, columns = 32, pick.choice([24, 32, 33, 40, 52, 64])
    tile = pick.choice([4, 8, 16])
    lower, step = pick.choice([0, 4, 8]), pick.choice([1, 2, 4, 8, 16])
    upper, scale = pick.choice([columns, columns - tile + 1]), pick.choice([1, 2, 4])
    plus = pick.choice([0, 0, 1, 8])
    text = f"""
!global = !nv_tileas.tensor<{rows}x{columns}xf16, global>
func.func @k(%A: !global) {{
  %zero = arith.constant 0 : i32
  %lower = arith.constant {lower} : i32
  %upper = arith.constant {upper} : i32
  %step = arith.constant {step} : i32
  %scale = arith.constant {scale} : i32
  %plus = arith.constant {plus} : i32
  scf.for %i = %lower to %upper step %step : i32 {{
    %x = arith.muli %i, %scale : i32
    %y = arith.addi %x, %plus : i32
    %t = nv_tileas.load %A[%zero, %y] : !global -> tensor<4x{tile}xf16>
  }}
  func.return
}}
"""
    loop = only(text)
    facts = loop.op("t").facts
    assert facts.contiguity is not None
    assert facts.divisibility is not None
    touched: list[int] = []
    starts: list[int] = []
    for i in range(lower, upper, step):
        at = i * scale + plus
        starts.append(at)
        for row in range(4):
            for begin in range(0, tile, facts.contiguity):
                run = range(at + begin, at + begin + facts.contiguity)
                inside = [c for c in run if c < columns]
                assert len(inside) in (0, len(run)), "a run lies on both sides of the edge"
                touched += [(row * columns + c) * 2 for c in inside]
            assert (row * columns + at) * 2 % facts.divisibility == 0
    assert facts.bounds is not None
    assert facts.bounds[0] <= 0
    assert facts.bounds[1] == max(0, *starts), "the last turn is known exactly"
    if touched:
        assert facts.memory_range is not None
        assert facts.memory_range[0] <= min(touched)
        assert max(touched) + 1 <= facts.memory_range[1]


# Clusters -----------------------------------------------------------------------------------

_CLUSTER = """
!global = !nv_tileas.tensor<4096x4096xf16, global>
!smem = !nv_tileas.smem_ref<64x64xf16>
func.func @k(%A: !global, %block: i32, %n: i32) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %wide = arith.constant 64 : i32
  %tiles = arith.constant 4096 : i32
  scf.for %tile = %block to %tiles step %wide : i32 {{
    %m, %n_1, %valid = nv_tileas.work_tile_info %tile
        {{problem = array<i64: 4096, 4096>, tile = array<i64: 64, 64>,
          cluster = array<i64: {cluster}>}}
        : i32 -> i32, i32, i1
    %row = arith.muli %{axis}, %wide : i32
    scf.for %k = %zero to %n step %one : i32 {{
      %column = arith.muli %k, %wide : i32
      %t = nv_tileas.async.tiled_tma_load %A[%row, %column]
        {{stretto.latency = 6000, stretto.uses = []}} : !global -> !smem
      %r = nv_tileas.async.smem_read %t : !smem -> tensor<64x64xf16>
    }}
  }}
  func.return
}}
"""


@pytest.mark.parametrize(
    ("cluster", "axis", "shared"),
    [("2, 1", "n_1", True), ("2, 1", "m", False), ("1, 2", "m", True), ("1, 1", "m", None)],
)
def test_a_tile_for_several_blocks_of_a_cluster_has_the_ceiling_of_clusters(
    cluster: str, axis: str, shared: bool | None
) -> None:
    loop = only(_CLUSTER.format(cluster=cluster, axis=axis), "b200-pipes")
    assert loop.op("t").facts.cluster is shared
    if shared:
        assert prepare(loop, "blackwell").loop.op("t").latency == 6000
    else:
        with pytest.raises(LoopError, match="puts the ceiling of one such dependence at 5000"):
            prepare(loop, "blackwell")


@pytest.mark.parametrize("place", ["%tile", "%block", "%blocked"])
def test_what_follows_from_the_block_is_its_own(place: str) -> None:
    """The number of a tile, and of a block, are other ones in each block of a cluster."""
    text = _CLUSTER.format(cluster="2, 1", axis="n_1").replace(
        "%column = arith.muli %k, %wide : i32",
        f"""%blocked = nv_tileas.block_index {{axis = 0 : i64}} : i32
      %column = arith.addi %k, {place} : i32""",
    )
    assert only(text, "b200-pipes").op("t").facts.cluster is False


# The pass -----------------------------------------------------------------------------------


def analysed(text: str) -> str:
    parsed = parse_module(text, "k.mlir")
    with listening(parsed):
        AxisAnalysis().apply(Context(), parsed.module)
    return print_module(parsed.module)


@pytest.mark.parametrize("name", ["gemm", "attention_forward", "persistent_gemm", "layernorm"])
def test_the_pass_writes_what_is_read_without_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.mlir").read_text(encoding="utf-8")
    written = analysed(text)
    assert written.count(FACTS) >= 2
    assert read_mlir("k.mlir", written)[0] == read_mlir("k.mlir", text)[0]
    assert analysed(written) == written


def test_facts_that_are_stated_stand() -> None:
    stated = TMA.replace(" :", " {stretto.facts = {divisibility = 4}} :", 1)
    assert analysed(kernel(stated)).count("divisibility = 4 : i64") == 1
    assert only(kernel(stated)).op("t").facts == Facts(divisibility=4)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("triton/*.ttir")), ids=lambda p: p.stem)
def test_a_lowered_kernel_tells_as_much_as_before(path: Path) -> None:
    """What the lowering states of an access, a reader of its module finds too."""
    kernels = read_ttir(path.name, path.read_text(encoding="utf-8"))
    module, _ = lowered_module(kernels, load_machine("blackwell"))
    stated = {o.loop.name: o.loop for o in read_loops(Parsed.of_module(module)).loops}
    for op in module.walk():
        op.attributes.pop(FACTS, None)
    derived = {o.loop.name: o.loop for o in read_loops(Parsed.of_module(module)).loops}
    compared = 0
    for name, loop in stated.items():
        for op in loop.ops:
            if op.facts.divisibility is not None:
                found = derived[name].op(op.name).facts
                assert (found.contiguity, found.divisibility, found.constancy) == (
                    op.facts.contiguity,
                    op.facts.divisibility,
                    op.facts.constancy,
                )
                compared += 1
    assert compared or not stated


# Any MLIR, and wrong promises ----------------------------------------------------------------


def test_functions_of_several_blocks_and_unknown_operations_are_looked_at() -> None:
    text = """
!global = !nv_tileas.tensor<4096x4099xf16, global>
func.func @k(%A: !global, %c: i1, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %odd = "cute.constant"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> i32
  cf.cond_br %c, ^b(%odd : i32), ^d
^b(%x: i32):
  scf.for %i = %zero to %n step %one : i32 {
    %t = nv_tileas.async.tiled_tma_load %A[%x, %i] : !global -> !nv_tileas.smem_ref<64x64xf16>
    %g = nv_tileas.generic "arith.addi"(%t) : (!nv_tileas.smem_ref<64x64xf16>) -> i32
  }
  cf.br ^d
^d:
  func.return
}
"""
    loop = only(text)
    assert loop.op("t").facts.divisibility == 2
    assert loop.op("t").facts.bounds is None


_ODD = """
func.func @odd(%n: i32, %c: i1, %i: index) {
  %z = arith.constant 0 : i32
  %s = arith.constant 70 : i32
  %a = arith.shli %n, %s : i32
  %b = arith.shrsi %n, %z : i32
  %d = arith.divsi %n, %z : i32
  %r = arith.remsi %n, %z : i32
  %u = arith.ceildivsi %n, %z : i32
  %v = arith.index_cast %i : index to i32
  %w = arith.trunci %n : i32 to i8
  %x = arith.extui %w : i8 to i64
  %k = arith.constant dense<[1, 2]> : tensor<2xi32>
  %e = arith.constant dense<> : tensor<0xi32>
  %q = scf.while (%t = %n) : (i32) -> i32 {
    scf.condition(%c) %t : i32
  } do {
  ^bb0(%t: i32):
    scf.yield %t : i32
  }
  func.return
}
"""


def test_any_module_is_analysed() -> None:
    """Every operation there is, well used and not: nothing of it stops the analysis."""
    files = [*(EXAMPLES.parent / "tests" / "lit").rglob("*.mlir"), *EXAMPLES.glob("*.mlir")]
    texts = [part for file in files for part in file.read_text("utf-8").split("// -----")]
    seen = 0
    for text in (_ODD, *texts):
        try:
            parsed = parse_module(text, "k.mlir", verify=False)
        except MlirError:
            continue
        addresses = Addresses(parsed)
        for value, axis in addresses.axes():
            shape = shape_of(value.type) or ()
            assert axis is None or len(axis.contiguity) == max(1, len(shape))
        for op in parsed.module.walk():
            addresses.of(op)
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("name", ["trunci", "extui", "ceildivsi", "floordivsi"])
@pytest.mark.parametrize("number", [0, 8, 24, 100, 264])
def test_widths_and_roundings_claim_what_holds(name: str, number: int) -> None:
    """Of a number of which only the divisor is known, and of one that is known."""
    divisor = number & -number or 64
    into = {"trunci": "i8", "extui": "i64"}.get(name)
    made = f"arith.{name} %n : i32 to {into}" if into else f"arith.{name} %n, %by : i32"
    text = f"""func.func @k(%n: i32 {{stretto.divisibility = {divisor}, stretto.lower = 0,
        stretto.upper = 300}}) {{
  %by = arith.constant 24 : i32
  %made = {made}
  func.return
}}"""
    (axis,) = (a for v, a in Addresses(parse_module(text)).axes() if v.name_hint == "made")
    assert axis is not None
    wrapped = (number + 128) % 256 - 128
    value = {"trunci": wrapped, "extui": number, "ceildivsi": -(-number // 24)}.get(
        name, number // 24
    )
    assert value % axis.divisibility[0] == 0
    assert axis.lower is None or axis.lower <= value
    assert axis.upper is None or axis.upper >= value


def test_a_module_without_functions_is_analysed() -> None:
    text = kernel(TMA, array="4096x4099xf16")
    inner = text[text.index("  %zero") : text.index("  func.return")]
    types = text[: text.index("func.func")]
    bare = f'{types}%A = "test.array"() : () -> !global\n{inner}'
    assert only(bare).op("t").facts.divisibility == 2


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("{stretto.divisibility = 0}", "argument 0: `stretto.divisibility` is 0 : i64; expected a"),
        ('{stretto.lower = "x"}', 'argument 0: `stretto.lower` is "x"; expected a whole number'),
        ("{stretto.divisibilty = 8}", "did you mean `stretto.divisibility`?"),
    ],
)
def test_wrong_promises_are_told_at_their_place(argument: str, told: str) -> None:
    with pytest.raises(MlirError) as caught:
        only(kernel(TMA, argument=argument))
    text = str(caught.value)
    assert told in text
    assert "k.mlir:5:27: error" in text


def test_a_machine_may_ask_for_the_memory_range(tmp_path: Path) -> None:
    """By what is touched of an array: here one of more than 256 KiB takes another row."""
    text = load_text("blackwell").replace(
        "'divisibility % 16 == 0', why = \"the address is not divisible by 16 bytes\"",
        "'last_byte < 262144', why = \"it reaches too far\"",
        1,
    )
    machine = tmp_path / "near.toml"
    machine.write_text(text, encoding="utf-8")
    for upper, encoding in ((64, "tma_load"), (4096, "tma_load_by_threads")):
        text = kernel(TMA.replace("[%zero, %i]", "[%i, %zero]"), upper=upper, array="4096x64xf16")
        (loop,) = stretto.read(_write(tmp_path / "k.mlir", text))
        assert prepare(loop, str(machine)).loop.op("t").encoding == encoding


def load_text(name: str) -> str:
    folder = Path(stretto.__file__).parent / "machine" / "targets"
    return (folder / f"{name}.toml").read_text(encoding="utf-8")


def _write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)
