"""Kernels whose threads exchange elements in shared memory, beside the rings that fill it."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples" / "triton"


def _matmul(*changes: tuple[str, str]) -> str:
    """The product of matrices that ships, changed."""
    text = (EXAMPLES / "matmul_descriptors.ttir").read_text(encoding="utf-8")
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


_ONE = "tensor<1x128x128xf16>"
_STORED = "%c_desc[%row_2, %column_3], %0 : !tt.tensordesc<tensor<128x128xf16>>, "
TURNED = _matmul(
    (
        f"    tt.descriptor_store {_STORED}tensor<128x128xf16>",
        (
            "    %turned = tt.trans %0 {order = array<i32: 1, 0>} : tensor<128x128xf16> -> "
            "tensor<128x128xf16>\n"
            f"    tt.descriptor_store {_STORED.replace('%0', '%turned')}tensor<128x128xf16>"
        ),
    )
)
"""Each tile of the product is stored transposed."""


def _batched(*lines: str) -> str:
    """The product is one of a batch, by a view of its sums; lines make `%1` of `%beside`."""
    seen = "%beside = tt.reshape %total_4 : tensor<128x128xf32> -> tensor<1x128x128xf32>"
    cast = "%0 = arith.truncf %1 : tensor<1x128x128xf32> to tensor<1x128x128xf16>"
    return _matmul(
        (
            "%c_ptr, [%M, %N], [%b_desc, %c1_i64] : <f16>, <tensor<128x128xf16>>",
            f"%c_ptr, [%c1_i32, %M, %N], [%b_desc, %b_desc, %c1_i64] : <f16>, <{_ONE}>",
        ),
        ("    %c0_i32 =", "    %c1_i32 = arith.constant 1 : i32\n    %c0_i32 ="),
        (
            "    %0 = arith.truncf %total_4 : tensor<128x128xf32> to tensor<128x128xf16>",
            "\n".join(f"    {line}" for line in (seen, *lines, cast)),
        ),
        (
            f"{_STORED}tensor<128x128xf16>",
            f"%c_desc[%c0_i32, %row_2, %column_3], %0 : !tt.tensordesc<{_ONE}>, {_ONE}",
        ),
    )


BATCHED = _batched("%1 = arith.mulf %beside, %beside : tensor<1x128x128xf32>")
"""Sums are multiplied in the shape of the batch: they are exchanged at their full width."""
NARROWED = _batched().replace("%1 :", "%beside :")
"""They are only narrowed there, which may as well be done before."""
