"""Triton's TTIR, in the forms of its versions and in the generic one, becomes a kernel."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest

import stretto
import stretto.triton
from stretto.errors import DocumentError, StrettoError
from stretto.frontends.triton import read_ttir
from stretto.kernel import Kernel, KernelError, Pointer, Scalar, Tile, View
from stretto.triton.reading import Specialization

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
VERSIONS = Path(__file__).parents[1] / "ttir"
DUMPS = sorted(EXAMPLES.glob("*.ttir"))
OTHERS = sorted(VERSIONS.glob("*.ttir"))


def _read(path: Path) -> Kernel:
    (kernel,) = read_ttir(path.name, path.read_text())
    return kernel


def _shape(kernel: Kernel) -> list[tuple[str, list[str]]]:
    """What a kernel does, without names and places."""
    return [(op.name, [str(value.type) for value in op.results]) for op in kernel.walk()]


@pytest.mark.parametrize("path", [*DUMPS, *OTHERS], ids=lambda path: path.stem)
def test_every_dump_is_read(path: Path) -> None:
    kernel = _read(path)
    assert path.stem.startswith((kernel.name, "attention_forward"))
    assert any(op.name == "scf.for" for op in kernel.walk())


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_versions_and_forms_agree_on_what_a_kernel_does(path: Path) -> None:
    ours = EXAMPLES / f"{path.stem.rsplit('-', 1)[0]}.ttir"
    constants = "arith.constant"
    mine = sorted(map(str, (s for s in _shape(_read(path)) if s[0] != constants)))
    theirs = sorted(map(str, (s for s in _shape(_read(ours)) if s[0] != constants)))
    # 3.8 and later write a negation where earlier ones subtract from zero, and fold some constants.
    assert [m for m in mine if "negf" not in m][:1] == theirs[:1]
    assert abs(len(mine) - len(theirs)) <= 8


def test_places_are_those_of_the_users_source() -> None:
    kernel = _read(EXAMPLES / "attention_forward_d128.ttir")
    (product, _) = (op for op in kernel.walk() if op.name == "tile.dot")
    assert product.location.file == "attention_forward.py"
    assert product.location.line > 0
    assert product.location.caller is not None, "it stands in a function that was inlined"
    assert product.results[0].name == "scores"
    # What stands in Triton's own library is told where the user calls it.
    assert not any("standard.py" in op.location.file for op in kernel.walk())


def test_what_is_promised_of_parameters_is_kept() -> None:
    for path in (EXAMPLES / "softmax.ttir", VERSIONS / "softmax-generic.ttir"):
        kernel = _read(path)
        assert [p.divisibility for p in kernel.parameters] == [16, 16, 16, 16, 1, 1]


def test_bits_of_a_float_are_its_value() -> None:
    kernel = _read(EXAMPLES / "softmax.ttir")
    values = [op.attributes["value"] for op in kernel.walk() if op.name == "arith.constant"]
    assert -math.inf in values


def test_an_early_return_becomes_a_choice() -> None:
    for path in (EXAMPLES / "softmax.ttir", VERSIONS / "softmax-generic.ttir"):
        kernel = _read(path)
        (choice,) = (op for op in kernel.body.operations if op.name == "scf.if")
        assert any(op.name == "scf.for" for op in choice.regions[0].operations)
        assert [op.name for op in choice.regions[1].operations] == ["scf.yield"]


def test_types_of_all_kinds() -> None:
    kernel = _read(EXAMPLES / "matmul_persistent.ttir")
    first = kernel.parameters[0].value.type
    assert first == View((128, 64), Scalar("f16"))
    pointers = _read(EXAMPLES / "matmul_pointers.ttir")
    tiles = {value.type for op in pointers.walk() for value in op.results}
    assert Tile((128, 64), Pointer(Scalar("f16"))) in tiles


def test_options_come_from_the_json_beside() -> None:
    path = EXAMPLES / "attention_backward_q.ttir"
    options = path.with_suffix(".json")
    beside = (options.name, options.read_text())
    (kernel,) = read_ttir(path.name, path.read_text(), beside)
    assert (kernel.warps, kernel.stages, kernel.target) == (8, 2, "cuda:90")


def test_ttgir_and_python_are_refused_with_advice(tmp_path: Path) -> None:
    ttgir = tmp_path / "k.ttgir"
    ttgir.write_text(
        "#b = #ttg.blocked<{sizePerThread = [1]}>\nmodule {\n  tt.func @k() {\n tt.return }\n}"
    )
    with pytest.raises(DocumentError, match=r"is TTGIR.*give the \.ttir"):
        stretto.read(ttgir)
    with pytest.raises(DocumentError, match=r"is Python.*stretto\.triton\.read"):
        stretto.read(EXAMPLES / "softmax.py")


_FRAME = """module {{
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {{
    {0}
    tt.return loc("k.py":9:0)
  }}
}}
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '%x = tt.extern_elementwise %n {symbol = "f"} : (i32) -> i32 loc("k.py":4:8)',
            "k.py:4:9: error: `f` of a library, whose value is not known",
        ),
        (
            '%x = tt.elementwise_inline_asm "nop; // $0" {pure = false} -> i32 loc("k.py":6:3)',
            "k.py:6:4: error: assembly that does more than compute; say is_pure=True",
        ),
        ("%x = tt.splat %m : i32 -> tensor<8xi32>", "k.ttir:3:10: error: `%m` is used"),
        ("%x = arith.addi %n, %p : i32", "k.ttir:3:10: error: `arith.addi` of i32, ptr<f32>"),
        ("%x = arith.addi %n %n : i32", "k.ttir:3:24: error: expected `,`"),
        ("%x = arith.cmpi lt, %n, %n : i32", "k.ttir:3:10: error: `lt` is no comparison"),
        ("%x = foo.bar %n", "k.ttir:3:10: error: `foo.bar` is not an operation"),
        ("%x = arith.constant dense<[1, 2]> : tensor<3xi32>", "2 numbers for a tile of 3"),
        ("%x = ttg.convert_layout %n : i32 -> i32", "`ttg.convert_layout` belongs to TTGIR"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(line: str, said: str) -> None:
    with pytest.raises(KernelError) as caught:
        read_ttir("k.ttir", _FRAME.format(line))
    assert said in str(caught.value)


def test_hints_of_the_author_are_kept() -> None:
    line = "%x = arith.addi %n, %n {tt.divisibility = dense<32> : tensor<1xi32>} : i32"
    (kernel,) = read_ttir("k.ttir", _FRAME.format(line))
    (hint,) = (op for op in kernel.walk() if op.name == "tile.hint")
    assert hint.attributes["divisibility"] == (32,)


# From Python ------------------------------------------------------------------------------


def jitted(x: object, y: object, B: int, C: int = 4) -> None:  # noqa: N803
    del x, y, B, C


class Jitted:
    """As much of a function under @triton.jit as is asked before Triton is."""

    def __init__(self) -> None:
        self.__name__ = "jitted"
        self.signature = inspect.signature(jitted)
        self.arg_names = list(self.signature.parameters)


class FailingTriton:
    """Triton, as it fails: with a picture of the source, and the reason below it."""

    def __init__(self) -> None:
        self.asked: Specialization | None = None

    def ttir(self, kernel: object, special: Specialization, target: tuple[str, int]) -> None:
        self.asked = special
        raise ValueError(f"at 2:4:\n{kernel!r} for {target}\n    ^\nthe range is no power of 2\n")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> FailingTriton:
    triton = FailingTriton()
    monkeypatch.setattr("stretto.triton.reading.found_triton", lambda: triton)
    return triton


POINTERS = {"x": "*fp16", "y": "*fp16"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"signature": POINTERS}, "parameter `B` has neither a type nor a value; give signature="),
        ({"signature": {"x": "*fp16"}, "constexprs": {"B": 4}}, "parameter `y` has neither a type"),
        ({"signature": {**POINTERS, "x": "*f16"}}, r"`\*f16`, which Triton has not; did .* `fp16`"),
        ({"signature": {**POINTERS, "x": "fp16*"}}, "which Triton has not; did you mean `fp16`"),
        ({"signature": {**POINTERS, "x": "tensordesc<fp16>"}}, "which Triton has not; types are"),
        ({"signature": {**POINTERS, "x": None}}, "the type of `x` is None; expected a text"),
        ({"signature": {**POINTERS, "z": "i32"}}, "has no parameter `z`; it has x, y, B, C"),
        ({"signature": POINTERS, "undivided": ["z"]}, "has no parameter `z`"),
        ({"signature": ["x"]}, "is given; expected a dict by names of parameters"),
        ({"signature": POINTERS, "target": "cuda:90"}, "the target is 'cuda:90'; expected such as"),
        ({"signature": POINTERS, "constexprs": {"B": 3}}, "`jitted`: the range is no power of 2"),
    ],
)
@pytest.mark.usefixtures("failing")
def test_what_triton_is_not_given_right_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(StrettoError, match=told):
        stretto.triton.read(Jitted(), **given)


@pytest.mark.usefixtures("failing")
def test_only_a_function_of_triton_is_read() -> None:
    with pytest.raises(StrettoError, match=r"a function under @triton.jit is read, not str"):
        stretto.triton.read("matmul.ttir", signature={})


def test_a_parameter_may_have_its_default(failing: FailingTriton) -> None:
    with pytest.raises(StrettoError, match="Triton cannot compile"):
        stretto.triton.read(Jitted(), signature=POINTERS, constexprs={"B": 8})
    assert failing.asked is not None
    assert failing.asked.constexprs == {(2,): 8, (3,): 4}
    assert failing.asked.signature == {**POINTERS, "B": "constexpr", "C": "constexpr"}


@pytest.mark.parametrize("what", ["wait", "launch_dependents"])
def test_a_kernel_that_is_launched_beside_the_one_before_is_read_without_that(what: str) -> None:
    asm = f'"griddepcontrol.{what}; // dummy $0"'
    line = f'%x = tt.elementwise_inline_asm {asm} {{constraints = "=r", pure = false}} -> i32'
    (kernel,) = read_ttir("k.ttir", _FRAME.format(line))
    assert "tile.inline_asm" not in [op.name for op in kernel.walk()]
