"""How Triton's MLIR spells its operations: one line each, read by `parsing.py`.

tt.addptr     o , o A : R , T        two operands, attributes, then the result's type and another

o   an operand                 ?    a comma and an operand, if they stand here
*   operands with commas       [*]  the same in brackets
by  an asterisk                f:x  the word `x`, if it stands here
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
"""

from __future__ import annotations

_ARITH_BINARY = (
    "addf", "subf", "mulf", "divf", "remf", "maxnumf", "minnumf", "maximumf", "minimumf",
    "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui",
    "floordivsi", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori", "shli", "shrsi",
    "shrui",
)  # fmt: skip
_ARITH_CASTS = (
    "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast",
    "index_cast", "index_castui",
)  # fmt: skip
_MATH_UNARY = (
    "absf", "absi", "exp", "exp2", "expm1", "log", "log2", "log1p", "log10", "sqrt", "rsqrt",
    "sin", "cos", "tan", "tanh", "sinh", "cosh", "erf", "floor", "ceil", "round", "roundeven",
    "trunc",
)  # fmt: skip

FORMATS: dict[str, str] = {
    **{f"arith.{name}": "o , o B A : R" for name in _ARITH_BINARY},
    **{f"arith.{name}": "o B A : T to R" for name in _ARITH_CASTS},
    **{f"math.{name}": "o B A : R" for name in _MATH_UNARY},
    "arith.negf": "o B A : R",
    "arith.cmpi": "W:predicate , o , o A : C",
    "arith.cmpf": "W:predicate , o , o B A : C",
    "arith.select": "o , o , o A : V",
    "math.fma": "o , o , o B A : R",
    "math.powf": "o , o B A : R",
    "scf.yield": "A *G",
    "llvm.intr.assume": "o A : T",
    "gpu.barrier": "A",
    "ttg.barrier": "f:local f:| f:global f:all A",
    "ub.poison": "A : R",
    "tt.return": "A *G",
    "tt.reduce.return": "* A : T",
    "tt.scan.return": "* A : T",
    "tt.get_program_id": "W:axis A : R",
    "tt.get_num_programs": "W:axis A : R",
    "tt.make_range": "A : R",
    "tt.splat": "o A : T -> R",
    "tt.unsplat": "o A : T -> R",
    "tt.broadcast": "o A : T -> R",
    "tt.expand_dims": "o A : T -> R",
    "tt.reshape": "o f:allow_reorder f:efficient_layout A : T -> R",
    "tt.trans": "o A : T -> R",
    "tt.join": "o , o A : T -> R",
    "tt.split": "o A : T -> R",
    "tt.cat": "o , o A : T -> R",
    "tt.gather": "o [*] f:efficient_layout A : F",
    "tt.addptr": "o , o A : R , T",
    "tt.ptr_to_int": "o A : T -> R",
    "tt.int_to_ptr": "o A : T -> R",
    "tt.bitcast": "o A : T -> R",
    "tt.fp_to_fp": "o A f:, L A : T -> R",
    "tt.clampf": "o , o , o , L A : R",
    "tt.precise_sqrt": "o A : R",
    "tt.precise_divf": "o , o A : R",
    "tt.mulhiui": "o , o A : R",
    "tt.load": "o ? ? L A : P",
    "tt.store": "o , o ? L A : T",
    "tt.atomic_rmw": "W:atomic_rmw_op , W:sem , W:scope , o , o ? A : F",
    "tt.atomic_cas": "W:sem , W:scope , o , o , o A : F",
    "tt.make_tensor_descriptor": "o , [*] , [*] A : Q , D!",
    "tt.descriptor_load": "o [*] L A : D -> R",
    "tt.descriptor_store": "o [*] , o A : D , T",
    "tt.descriptor_reduce": "W:kind , o [*] , o A : D , T",
    "tt.descriptor_gather": "o [*] A : F",
    "tt.descriptor_scatter": "o [*] , o A : M",
    "tt.dot": "o , o , o f:, L A : T by T -> R",
    "tt.assert": "o , S:message A : T",
}
"""By name; what Triton prints in the generic form has none."""

REFUSED = {
    "tt.print": ("a print", "take it out: it cannot be pipelined"),
    "tt.extern_elementwise": ("a call of a library", "write it with tl.math or arithmetic"),
    "tt.elementwise_inline_asm": ("assembly", "write it with tl.math or arithmetic"),
    "tt.dot_scaled": ("a block-scaled product", "only products of plain tiles are lowered"),
    "tt.call": ("a function that is not inlined", "take its `noinline` away"),
    "tt.histogram": ("a histogram", "count with tl.atomic_add, or with comparisons and sums"),
    "tt.map_elementwise": ("a function mapped over elements", "write it with whole tiles"),
    "tt.make_tensor_ptr": ("a block pointer", "use tl.make_tensor_descriptor"),
    "tt.advance": ("a block pointer", "use tl.make_tensor_descriptor"),
}
"""What cannot be lowered, by name: what it is, and what can be done."""
