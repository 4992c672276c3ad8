"""TTGIR, as Triton dumps it after its pipeliner, made into a function that the sanitizer runs.

    %t = ttng.warp_group_dot %a, %b, %c {…} : …   ─►   t = __op__.warp_group_dot(a, b, c)

Each line becomes the same line of Python, so findings have the lines of the dump. What is not known
is refused by its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stretto.errors import DocumentError

RUNTIME = "__op__"
_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULT = re.compile(r"^(%[\w$.-]+)(?::(\d+))? = (.*)$")
_LOCATION = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)")
_FUNCTION = re.compile(r"tt\.func\s+(?:public\s+|private\s+)?@([\w$.]+)\((.*)\)")
_ARGUMENT = re.compile(r"(%[\w$.-]+): ([^,{]*?(?:<.*?>+)?[^,{]*?)\s*(?:\{[^}]*\})?(?:,|$)")
_FOR = re.compile(
    r"scf\.for (?:unsigned )?(%[\w$.-]+) = (\S+) to (\S+) step (\S+)(?: iter_args\((.*?)\) -> )?"
)

TYPED = frozenset(
    [
        "arith.constant",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
        "arith.sitofp",
        "arith.uitofp",
        "arith.fptosi",
        "arith.fptoui",
        "arith.truncf",
        "arith.extf",
        "arith.bitcast",
        "arith.index_cast",
        "tt.splat",
        "tt.broadcast",
        "tt.make_range",
        "tt.reshape",
        "tt.bitcast",
        "tt.fp_to_fp",
        "ttg.local_alloc",
        "ttng.reinterpret_tensor_descriptor",
        "ttg.memdesc_subslice",
        "ttg.memdesc_reinterpret",
        "ttg.memdesc_reshape",
    ]
)
"""Operations that depend on the type of their result."""

KNOWN = TYPED | frozenset(
    [
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divsi",
        "arith.divui",
        "arith.remsi",
        "arith.remui",
        "arith.andi",
        "arith.ori",
        "arith.xori",
        "arith.shli",
        "arith.shrsi",
        "arith.shrui",
        "arith.minsi",
        "arith.maxsi",
        "arith.minui",
        "arith.maxui",
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.maxnumf",
        "arith.minnumf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.ceildivsi",
        "arith.negf",
        "arith.cmpi",
        "arith.cmpf",
        "arith.select",
        "math.exp",
        "math.exp2",
        "math.log",
        "math.log2",
        "math.sqrt",
        "math.rsqrt",
        "math.absf",
        "math.fma",
        "math.floor",
        "math.ceil",
        "math.sin",
        "math.cos",
        "math.erf",
        "tt.get_program_id",
        "tt.get_num_programs",
        "tt.expand_dims",
        "tt.addptr",
        "tt.load",
        "tt.store",
        "tt.trans",
        "tt.dot",
        "ttg.convert_layout",
        "ttg.memdesc_index",
        "ttg.memdesc_trans",
        "ttg.local_load",
        "ttg.local_store",
        "ttg.local_dealloc",
        "ttg.async_copy_global_to_local",
        "ttg.async_commit_group",
        "ttg.async_wait",
        "ttg.global_scratch_alloc",
        "ttng.tensormap_create",
        "ttng.tensormap_fenceproxy_acquire",
        "ttng.init_barrier",
        "ttng.inval_barrier",
        "ttng.barrier_expect",
        "ttng.wait_barrier",
        "ttng.arrive_barrier",
        "ttng.fence_async_shared",
        "ttng.async_tma_copy_global_to_local",
        "ttng.async_tma_copy_local_to_global",
        "ttng.async_tma_reduce",
        "ttng.async_tma_store_wait",
        "ttng.warp_group_dot",
        "ttng.warp_group_dot_wait",
        "gpu.barrier",
        "ttg.barrier",
        "tt.assert",
    ]
)
"""Operations that are run."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of the dump, as Python with the same lines."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    """Names and types."""
    python: str
    warps: int


@dataclass(slots=True)
class _Region:
    """What an open brace began."""

    kind: str
    target: str = ""
    many: bool = False
    carried: tuple[str, ...] = ()
    operands: str = ""
    axis: str = ""


@dataclass(slots=True)
class _Writer:
    """Line by line."""

    file: str
    lines: list[str] = field(default_factory=list[str])
    open: list[_Region] = field(default_factory=list[_Region])
    depth: int = 0

    def put(self, text: str) -> None:
        """The line of Python for the line at hand."""
        self.lines.append("    " * self.depth + text)

    def fail(self, number: int, told: str) -> DocumentError:
        """What is not known, with its line."""
        return DocumentError(f"{self.file}:{number}:1", "", told)


def _python(name: str) -> str:
    """A value's name."""
    base, _, part = name.lstrip("%").partition("#")
    made = "v_" + re.sub(r"\W", "_", base.replace("-", "m"))
    return f"{made}[{part}]" if part else made


def _values(text: str) -> list[str]:
    return [_python(n) for n in _NAME.findall(text)]


def is_ttgir(text: str) -> bool:
    """Whether a text is a dump of Triton's GPU dialect."""
    return "tt.func" in text and ("ttg.num-warps" in text or "#ttg." in text)


def translated(text: str, file: str) -> Kernel:
    """The first public function of a dump."""
    if "cuda:90" not in text:
        raise DocumentError(file, "", "a dump for sm_90 is wanted (ttg.target = cuda:90)")
    warps = re.search(r'"ttg\.num-warps" = (\d+)', text)
    writer = _Writer(file)
    name, arguments = "", tuple[tuple[str, str], ...]()
    for number, raw in enumerate(text.splitlines(), 1):
        line = _LOCATION.sub("", raw).strip()
        if line.startswith("tt.func"):
            found = _FUNCTION.search(line)
            if found is None or name:
                raise writer.fail(number, "one function is read, and this is another")
            name = found[1]
            arguments = tuple((_python(n), t.strip()) for n, t in _ARGUMENT.findall(found[2]))
            writer.put(f"def kernel({', '.join(n for n, _ in arguments)}):")
            writer.depth += 1
            writer.open.append(_Region("function"))
        elif not name or not line or line.startswith(("#", "//")) or not writer.open:
            writer.put("pass" if writer.depth else "")
        else:
            _line(writer, number, line)
    if not name:
        raise DocumentError(file, "", "no function (tt.func) in it")
    return Kernel(name, arguments, "\n".join(writer.lines) + "\n", int(warps[1]) if warps else 4)


def _line(writer: _Writer, number: int, line: str) -> None:
    """One line of a function."""
    if line.startswith("}"):
        _close(writer, line)
        return
    result = _RESULT.match(line)
    target, many, rest = ("", False, line) if result is None else (
        _python(result[1]), result[2] is not None, result[3]
    )  # fmt: skip
    operation = rest.split(" ", 1)[0].split("(", 1)[0].strip('"')
    if operation == "scf.for":
        _for(writer, number, target, many, rest)
    elif operation == "scf.if":
        writer.put(f"if {_values(rest)[0]}:")
        writer.depth += 1
        writer.open.append(_Region("if", target, many))
        writer.lines[-1] += ""
    elif operation == "scf.yield":
        _yield(writer, rest)
    elif operation == "tt.reduce":
        axis = re.search(r"axis = (\d+)", rest)
        operands = ", ".join(_values(rest.split(" ", 1)[0]))
        region = _Region("reduce", target, many, operands=operands, axis=axis[1] if axis else "0")
        writer.open.append(region)
        writer.put("pass")
    elif line.startswith("^bb0(") and writer.open[-1].kind == "reduce":
        writer.put(f"def _combine({', '.join(_values(line))}):")
        writer.depth += 1
    elif operation == "tt.reduce.return":
        given = _values(_split(rest)[0])
        writer.put(f"return {given[0]}" if len(given) == 1 else f"return ({', '.join(given)})")
        writer.depth -= 1
    elif operation in ("tt.return", "scf.condition"):
        if operation == "scf.condition":
            raise writer.fail(number, "`scf.while` is not read")
        writer.put("return")
    elif operation in KNOWN:
        writer.put(_call(target, many, operation, rest))
    else:
        raise writer.fail(number, f"`{operation}` is not read: of TTGIR only loops with TMA, "
                          "mbarriers, warp_group_dot and cp.async are")  # fmt: skip


def _for(writer: _Writer, number: int, target: str, many: bool, rest: str) -> None:
    found = _FOR.search(rest)
    if found is None:
        raise writer.fail(number, "a loop that cannot be read")
    variable, low, high, step = (_python(n) for n in found.groups()[:4])
    pairs = re.findall(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)", found[5] or "")
    begun = "".join(f", ({_python(a)} := {_python(b)})" for a, b in pairs)
    writer.put(f"for {variable} in (__loop__({low}, {high}, {step}){begun}, None)[0]:")
    writer.depth += 1
    writer.open.append(_Region("for", target, many, tuple(_python(a) for a, _ in pairs)))


def _yield(writer: _Writer, rest: str) -> None:
    given = _values(_split(rest)[0])
    region = writer.open[-1]
    if not given:
        writer.put("pass")
    elif region.kind == "for":
        writer.put(f"{', '.join(region.carried)} = {', '.join(given)}")
    elif region.many:
        writer.put(f"{region.target} = ({', '.join(given)},)")
    else:
        writer.put(f"{region.target} = {given[0]}")


def _close(writer: _Writer, line: str) -> None:
    """The end of a region; what it gives is assigned on its line."""
    region = writer.open[-1]
    if line.startswith("} else"):
        writer.depth -= 1
        writer.put("else:")
        writer.depth += 1
        return
    writer.open.pop()
    if region.kind == "reduce":
        call = f"{RUNTIME}.reduce(({region.operands},), {region.axis}, _combine)"
        writer.put(f"{region.target} = {call}" if region.many else f"{region.target} = {call}[0]")
        return
    if region.kind == "function":
        writer.depth -= 1
        writer.put("")
        return
    last = writer.lines[-1].strip()
    if last.endswith(":"):
        # An empty region: its line has to say something.
        writer.lines[-1] += " pass"
    writer.depth -= 1
    if region.kind == "for" and region.target:
        whole = f"({', '.join(region.carried)},)" if region.many else region.carried[0]
        writer.put(f"{region.target} = {whole}")
    else:
        writer.put("pass")


def _split(rest: str) -> tuple[str, str]:
    """Operands and attributes, and the types behind them."""
    depth = 0
    for at, letter in enumerate(rest):
        depth += (letter in "{[(<") - (letter in "}])>")
        if depth <= 0 and rest.startswith(" : ", at):
            return rest[:at], rest[at + 3 :]
    return rest, ""


def _call(target: str, many: bool, operation: str, rest: str) -> str:
    """An operation as a call: its operands, what its text says besides, its result's type."""
    body, tail = _split(rest)
    body = body[len(operation) :] if not body.startswith('"') else body
    type_ = ""
    if operation in TYPED:
        tail = tail or "i1"
        type_ = re.split(r" -> | to ", tail)[-1].strip()
    name = operation.partition(".")[2]
    given = ", ".join([*_values(body), f"text={body.strip()!r}", f"type={type_!r}"])
    call = f"{RUNTIME}.{name}_({given})"
    if not target:
        return call
    return f"{target} = {call}" if not many else f"{target} = {RUNTIME}.several({call})"
