"""The operations of Tile IR as bytecode has them, one row each: payloads describe nothing.

    opcode │ result types │ flags │ attributes │ operands │ regions

    results    "a b": two types; "*": a count, then the types
    flags      names of bits, the lowest first: attributes that are there or not, optional
               attributes (`name:kind`), and optional operands (`?name`)
    attributes `name:kind`, in order; those that a flag names are there if the flag is set
    operands   "a b": two values; "?a": if its flag is set; "*a": a count, then the values;
               with "#" in front, one count for all of them

`@13.3` after a name: since that version. An attribute that a file is too old for has the value
after "=".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.frontends.tileir.sections import OLDEST, Version


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute, a flag or an operand of a row."""

    name: str
    kind: str = ""
    """Of an attribute: what is read. Of an operand: "", "?" or "*"."""
    since: Version = OLDEST
    default: str = ""
    bit: int | None = None
    """The flag that says whether it is there."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one operation is written."""

    opcode: int
    name: str
    since: Version
    results: int | None
    """How many types; None: a count stands before them."""
    flags: Version | None
    """Since when there is a field of flags; None: never."""
    units: tuple[Field, ...]
    """Flags that are attributes of their own."""
    attributes: tuple[Field, ...]
    operands: tuple[Field, ...]
    counted: bool
    """Whether one count stands before all operands."""
    regions: int
    is_terminator: bool

    @property
    def bits(self) -> int:
        """All flags that mean something."""
        fields = (*self.units, *self.attributes, *self.operands)
        return sum(1 << field.bit for field in fields if field.bit is not None)


_TEXT = """
0 absf r : source
1 absi r : source
2 addf r flush_to_zero rounding_mode:rounding : lhs rhs
3 addi r - overflow:overflow : lhs rhs
4 andi r : lhs rhs
5 assert - - message:string : condition
6 assume r - predicate:tagged : value
7 atomic_cas_tko rr ?mask,?token memory_ordering_semantics:semantics memory_scope:scope :
    pointers cmp val ?mask ?token
8 atomic_rmw_tko rr ?mask,?token memory_ordering_semantics:semantics memory_scope:scope
    mode:atomic : pointers arg ?mask ?token
9 bitcast r : source
10 break * : # *operands !
11 broadcast r : source
12 cat r - dim:int : lhs rhs
13 ceil r : source
14 cmpf r - comparison_predicate:predicate comparison_ordering:ordering : lhs rhs
15 cmpi r - comparison_predicate:predicate signedness:signedness : lhs rhs
16 constant r - value:dense :
17 continue * : # *operands !
18 cos r : source
19 cosh r : source
20 divf r flush_to_zero rounding_mode:rounding : lhs rhs
21 divi r - signedness:signedness rounding:rounding : lhs rhs
23 exp r - rounding_mode:rounding@13.3=full : source
24 exp2 r flush_to_zero : source
37 exti r - signedness:signedness : from
38 extract * : # source *indices
39 floor r : source
40 fma r flush_to_zero rounding_mode:rounding : lhs rhs acc
41 for * unsigned_cmp@13.2 : # lower_bound upper_bound step *init_values ; 1
42 ftof r - rounding_mode:rounding : from
43 ftoi r saturating@13.4 signedness:signedness rounding_mode:rounding : from
44 get_global r - name:symbol :
45 get_index_space_shape * : src
46 get_num_tile_blocks rrr :
47 get_tensor_shape * : src
48 get_tile_block_id rrr :
50 if * : condition ; 2
51 int_to_ptr r : source
58 iota r :
59 itof r - signedness:signedness rounding_mode:rounding : from
60 join_tokens * : # *tokens
61 load_ptr_tko rr memory_scope:scope,optimization_hints:hints,?mask,?padding_value,?token
    memory_ordering_semantics:semantics memory_scope optimization_hints : source ?mask
    ?padding_value ?token
62 load_view_tko * memory_scope:scope,optimization_hints:hints,?token
    memory_ordering_semantics:semantics memory_scope optimization_hints inbounds:bools@13.4= :
    view *index ?token
63 log r : source
64 log2 r : source
65 loop * : # *init_values ; 1
66 make_partition_view r : tensor_view
67 make_tensor_view * : base *dynamic_shape *dynamic_strides
68 make_token r :
69 maxf r propagate_nan,flush_to_zero : lhs rhs
70 maxi r - signedness:signedness : lhs rhs
71 minf r propagate_nan,flush_to_zero : lhs rhs
72 mini r - signedness:signedness : lhs rhs
73 mmaf r fast_acc@13.3 : lhs rhs acc
74 mmai r - signedness_lhs:signedness signedness_rhs:signedness : lhs rhs acc
76 mulf r flush_to_zero rounding_mode:rounding : lhs rhs
77 mulhii r : x y
78 muli r - overflow:overflow : lhs rhs
79 negf r : source
80 negi r - overflow:overflow@13.2=none : source
81 offset r : ptr offset
82 ori r : lhs rhs
83 permute r - permutation:int32s : source
84 fpowf r : source exponent
85 print_tko * ?token@13.2 str:string : *args ?token@13.2
86 ptr_to_int r : source
87 ptr_to_ptr r : source
88 reduce * - dim:int identities:array : # *operands ; 1
89 remf r : lhs rhs
90 remi r - signedness:signedness : lhs rhs
91 reshape r : source
92 return * : # *operands !
93 rsqrt r flush_to_zero : source
94 scan * - dim:int reverse:bool identities:array : # *operands ; 1
95 select r : cond val_if_true val_if_false
96 shli r - overflow:overflow : lhs rhs
97 shri r - signedness:signedness : lhs rhs
98 sin r : source
99 sinh r : source
100 sqrt r flush_to_zero rounding_mode:rounding : source
101 store_ptr_tko r memory_scope:scope,optimization_hints:hints,?mask,?token
    memory_ordering_semantics:semantics memory_scope optimization_hints : destination value
    ?mask ?token
102 store_view_tko * memory_scope:scope,optimization_hints:hints,?token
    memory_ordering_semantics:semantics memory_scope optimization_hints inbounds:bools@13.4= :
    tile view *index ?token
103 subf r flush_to_zero rounding_mode:rounding : lhs rhs
104 subi r - overflow:overflow : lhs rhs
105 tan r : source
106 tanh r - rounding_mode:rounding@13.2=full : source
107 trunci r - overflow:overflow : from
108 xori r : lhs rhs
109 yield * : # *operands !
110@13.2 atan2 r : x y
111@13.3 pack r : source
112@13.3 unpack r : source
113@13.3 alloca r global num_elem:int alignment:int :
114@13.3 mmaf_scaled r : lhs rhs acc lhs_scale rhs_scale
115@13.3 make_gather_scatter_view r : tensor_view
116@13.3 make_strided_view r : tensor_view
117@13.3 atomic_red_view_tko * ?token memory_ordering_semantics:semantics memory_scope:scope
    mode:atomic : view *index value ?token
118@13.4 insert * : # source destination *indices
119@13.4 gdc_launch_dependents_tko r : # ?token
120@13.4 gdc_wait_tko r : # ?token
121@13.4 fpowi r : source exponent
122@13.4 memory_fence_alias_tko r : token
"""


def _since(text: str) -> tuple[str, Version]:
    name, _, version = text.partition("@")
    if not version:
        return name, OLDEST
    major, minor = version.split(".")
    return name, (int(major), int(minor))


def _row(line: str) -> Row:
    head, _, tail = line.partition(" :")
    number, name, results, *rest = head.split()
    opcode, since = _since(number)
    flags = rest[0].split(",") if rest and rest[0] != "-" else []
    bits: dict[str, Field] = {}
    for bit, flag in enumerate(flags):
        said, version = _since(flag)
        called, _, kind = said.lstrip("?").partition(":")
        bits[called] = Field(called, kind, max(version, since), bit=bit)
    attributes: list[Field] = []
    for text in rest[1:]:
        before, has_default, default = text.partition("=")
        said, version = _since(before)
        called, _, kind = said.partition(":")
        given = bits.get(called)
        default = default if has_default else ""
        attributes.append(given or Field(called, kind, max(version, since), default))
    operands: list[Field] = []
    left, _, regions = tail.partition(";")
    words = left.split()
    for word in words:
        said, version = _since(word)
        called = said.lstrip("?*")
        if called not in ("#", "!"):
            given = bits.get(called)
            kind = said[: len(said) - len(called)]
            bit = given.bit if given else None
            operands.append(Field(called, kind, max(version, since), bit=bit))
    taken = {field.name for field in (*attributes, *operands)}
    return Row(
        opcode=int(opcode),
        name=name,
        since=since,
        results=None if results == "*" else results.count("r"),
        flags=min((field.since for field in bits.values()), default=None),
        units=tuple(field for field in bits.values() if field.name not in taken),
        attributes=tuple(attributes),
        operands=tuple(operands),
        counted="#" in words,
        regions=int(regions or 0),
        is_terminator="!" in words,
    )


def _lines() -> Iterator[str]:
    """One line a row; what is indented goes on."""
    yield from _TEXT.strip().replace("\n    ", " ").splitlines()


ROWS: dict[int, Row] = {row.opcode: row for row in map(_row, _lines())}
"""By opcode. Modules, globals and entries have sections of their own."""
