"""How Triton's MLIR spells its operations: one line each, read by `parsing.py`.

tt.addptr     o , o A : R , T        two operands, attributes, then the result's type and another

o   an operand                 ?    a comma and an operand, if they stand here
*   operands with commas       [*]  the same in brackets
by  an asterisk                f:x  the word `x`, if it stands here
s:x  the word `scale` and an operand, kept by name as `x`, if it stands here
A   attributes, if any         B    `overflow<nsw>`, `fastmath<fast>` and their like
W:x a word, kept as `x`        S:x  a text in quotes, kept as `x`
L   `word = value` pairs
R   the results' type          T    a type that says nothing new
P   a pointer's type, whose pointee is the result's
C   the operands' type; the result has i1 instead
V   one or more types with commas, of which the last is the result's
F   (types) -> results         D / Q  a descriptor's / pointer's type, with its name or without
D!  a descriptor's type, which is the result's
*G  operands, and their types if there are any
M   types with commas
X   a colon, operands, a colon and their types, if there are any
U   types of operands, if there are any, -> types of results with commas
"""

from __future__ import annotations

from stretto.ops.operations import ttir_formats

FORMATS: dict[str, str] = {
    **ttir_formats(),
    # Those that are several operations of a kernel, or one of them in another way.
    "arith.index_castui": "o B A : T to R",
    "ttg.barrier": "f:local f:| f:global f:all A",
    "ub.poison": "A : R",
    "tt.scan.return": "* A : T",
    "tt.unsplat": "o A : T -> R",
    "tt.bitcast": "o A : T -> R",
    "tt.fp_to_fp": "o A f:, L A : T -> R",
    "tt.clampf": "o , o , o , L A : R",
    "tt.extern_elementwise": "* A : F",
    "tt.dot_scaled": "o s:left , o s:right , o L A : M by M -> R",
}
"""By name; what Triton prints in the generic form has none."""

REFUSED = {
    "tt.call": ("a function that is not inlined", "take its `noinline` away"),
    "tt.map_elementwise": ("a function mapped over elements", "write it with whole tiles"),
    "tt.make_tensor_ptr": ("a block pointer", "use tl.make_tensor_descriptor"),
    "tt.advance": ("a block pointer", "use tl.make_tensor_descriptor"),
}
"""What cannot be lowered, by name: what it is, and what can be done."""
