"""One chunk of the input through the passes, and what is kept where a pass crashes.

    text ──► parse ──► [dump] pass [verify] [dump] ──► ... ──► print
               │               │
               └── errors      ├── errors: the chunk ends here
                               └── any other exception: a reproducer, then the chunk ends here

    line 1   module A                chunk 1: lines 1-2
         2   // -----
         3   module B                chunk 2: two empty lines, then line 3 on

A chunk keeps the empty lines of what stood before it, so that every position in it is one of the
file, and no diagnostic needs to be moved. Diagnostics leave in the order they arise, so that they
stand between the dumps where they belong.

    builtin.module { ... }                                     a reproducer: the IR before the pass
    {-#                                                        and the pipeline that runs it again,
      external_resources: {                                    in MLIR's own form, so that mlir-opt
        mlir_reproducer: {                                     and its kin read it as well
          pipeline: "builtin.module(tileas-generate-schedule)",
          disable_threading: false,
          verify_each: true
        }
      }
    #-}

`stretto-opt --run-reproducer FILE` runs it. A file may come from anywhere and name any pass, such
as xDSL's `mlir-opt`, which starts the program that its options name: only `HARMLESS` ones are run.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from time import perf_counter

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException

from stretto.diagnostics import Diagnostic, MlirError
from stretto.errors import DocumentError, StrettoError
from stretto.files import STDIN, write_text
from stretto.ir.opt.options import ALL, Settings
from stretto.ir.opt.pass_text import write_pipeline
from stretto.ir.parsing import Parsed, is_blank, parse_module, verify_module
from stretto.ir.printing import ModulePrinter
from stretto.ir.telling import Listener, Remark, listening
from stretto.ir.universe import STRETTO
from stretto.solve import IllegalScheduleError

MARKER = "// -----"
_MARK = re.compile(r"^[ \t]*// -----[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that is a module of its own."""

    text: str
    """With an empty line for every line before it."""
    first: int
    """Its first line in the file, counted from 1."""


def split(text: str, *, wanted: bool = True) -> tuple[Chunk, ...]:
    """The chunks of a file; one where splitting is not `wanted`."""
    marks = list(_MARK.finditer(text)) if wanted else []
    begins = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    before = [text.count("\n", 0, begin) for begin in begins]
    return tuple(
        Chunk("\n" * above + text[begin:end], above + 1)
        for above, begin, end in zip(before, begins, ends, strict=True)
    )


# Reproducers ------------------------------------------------------------------------------

HARMLESS = frozenset(STRETTO.all_passes) | {
    "arith-add-fastmath",
    "canonicalize",
    "control-flow-hoist",
    "convert-arith-to-varith",
    "convert-linalg-to-loops",
    "convert-scf-to-cf",
    "convert-varith-to-arith",
    "cse",
    "dce",
    "function-persist-arg-names",
    "licm",
    "linalg-fuse-multiply-add",
    "linalg-generalize-named-ops",
    "loop-hoist-memref",
    "lower-affine",
    "reconcile-unrealized-casts",
    "scf-for-loop-flatten",
    "scf-for-loop-range-folding",
    "scf-parallel-loop-tiling",
    "shape-inference",
    "varith-fuse-repeated-operands",
}
"""Passes that start no process, touch no file and run no other pass: each was read for that."""

_BEGIN, _END = "{-#", "#-}"
_PIPELINE = re.compile(r'\bpipeline\s*:\s*("(?:[^"\\]|\\.)*")')
_VERIFY_EACH = re.compile(r"\bverify_each\s*:\s*(true|false)")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run a reproducer."""

    pipeline: str
    verify_each: bool


def write_reproducer(ir: str, recipe: Recipe, reason: str) -> str:
    """The text of a reproducer; `reason` stands above it as a comment."""
    head = "".join(f"// {line}\n" for line in reason.splitlines())
    return (
        f"{head}// Run it again: stretto-opt --run-reproducer FILE\n{ir.rstrip()}\n\n"
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {json.dumps(recipe.pipeline)},\n"
        "      disable_threading: false,\n"
        f"      verify_each: {str(recipe.verify_each).lower()}\n"
        "    }\n  }\n#-}\n"
    )


def read_reproducer(text: str, file: str = STDIN) -> tuple[str, Recipe | None]:
    """The text with the recipe blanked out, positions kept, and the recipe if there is one."""
    begin, end = _trailer(text)
    trailer = text[begin:end]
    if "mlir_reproducer" not in trailer:
        return text, None
    rest = text[:begin] + re.sub(r"[^\n]", " ", trailer) + text[end:]
    pipeline = _PIPELINE.search(trailer)
    if pipeline is None:
        return rest, None
    try:
        passes = json.loads(pipeline[1])
    except ValueError as error:
        raise DocumentError(file, "", f"its pipeline is no string: {error}") from None
    each = _VERIFY_EACH.search(trailer)
    return rest, Recipe(passes, each is None or each[1] == "true")


def _trailer(text: str) -> tuple[int, int]:
    """Where the resources of a text stand: from the first that opens to the last close."""
    begin = 0 if text.startswith(_BEGIN) else text.find("\n" + _BEGIN) + 1
    end = text.rfind(_END)
    opens = text.startswith(_BEGIN, begin)
    return (begin, end + len(_END)) if opens and end >= begin + len(_BEGIN) else (0, 0)


# Where the time goes ----------------------------------------------------------------------

PARSER, VERIFIER, OUTPUT = "Parser", "Verifier", "Output"
_RULE = "===" + "-" * 73 + "==="


@dataclass
class Timer:
    """Seconds by name, in the order of first mention, for `--mlir-timing`.

    ----Wall Time----  ----Name----
      0.0120 ( 61.2%)  Parser
      0.0051 ( 26.0%)  tileas-generate-schedule
      0.0025 ( 12.8%)  Rest
      0.0196 (100.0%)  Total
    """

    began: float = field(default_factory=perf_counter)
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def measure(self, name: str) -> Generator[None]:
        """Add the time of a block to a name; also where the block fails."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def report(self) -> str:
        """The table, as of now."""
        total = perf_counter() - self.began
        rows = [*self.seconds.items(), ("Rest", max(0.0, total - sum(self.seconds.values())))]
        lines = [_RULE, "... Execution time report ...".center(len(_RULE)).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {total:.4f} seconds", ""]
        lines.append("  ----Wall Time----  ----Name----")
        for name, seconds in (*rows, ("Total", total)):
            share = 100 * seconds / total if total else 100.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {name}")
        return "\n".join(lines) + "\n"


# Passes -----------------------------------------------------------------------------------


class _ChunkError(Exception):
    """The chunk is at its end; what is wrong was told."""


@dataclass
class Runner:
    """Runs chunk after chunk of one file."""

    settings: Settings
    file: str
    context: Callable[[], Context]
    """A fresh context: what one chunk loads is not there for the next."""
    tell: Callable[[Diagnostic], None]
    timer: Timer = field(default_factory=Timer)
    remarks: list[Remark] = field(default_factory=list[Remark])
    crashes: int = 0

    def run(self, chunk: Chunk) -> str | None:
        """The module as text after all passes; None where there were errors."""
        try:
            context = self.context()
            parsed = self._parse(chunk, context)
            for i in range(len(self.settings.passes)):
                self._pass(chunk, context, parsed, i)
            with self.timer.measure(OUTPUT):
                return self.text(parsed.module) + "\n"
        except _ChunkError:
            return None

    def text(self, module: ModuleOp) -> str:
        """A module as the user wants to see it."""
        stream = StringIO()
        ModulePrinter(
            stream,
            print_generic_format=self.settings.generic,
            print_debuginfo=self.settings.debuginfo,
        ).print_op(module)
        return stream.getvalue()

    def _parse(self, chunk: Chunk, context: Context) -> Parsed:
        with self._telling(None):
            with self.timer.measure(PARSER):
                # As mlir-opt has it, a chunk of nothing but comments is an empty module.
                text = "builtin.module {}" if is_blank(chunk.text) else chunk.text
                parsed = parse_module(text, self.file, context=context, verify=False)
            with self.timer.measure(VERIFIER):
                faults = verify_module(parsed)
            if faults:
                raise MlirError(faults)
            return parsed

    def _verify_after(self, chunk: Chunk, parsed: Parsed, index: int) -> None:
        """A pass that leaves a module that does not verify is at fault, not the module."""
        with self.timer.measure(VERIFIER):
            faults = verify_module(parsed)
        if faults:
            self.crashes += 1
            reason = f"the module does not verify after pass {self.settings.passes[index].name}"
            kept = self._keep(chunk, index, reason)
            note = Diagnostic("note", f"{reason}; {kept}", self.file)
            raise MlirError([*faults[:-1], replace(faults[-1], notes=(*faults[-1].notes, note))])

    def _pass(self, chunk: Chunk, context: Context, parsed: Parsed, index: int) -> None:
        one, module = self.settings.passes[index], parsed.module
        self._dump("Before", self.settings.before, one, module)
        with listening(parsed) as listener, self._crashing(chunk, index), self._telling(listener):
            with self.timer.measure(one.name):
                one.apply(context, module)
            if self.settings.verify_each:
                self._verify_after(chunk, parsed, index)
        self._dump("After", self.settings.after, one, module)

    def _dump(self, when: str, passes: frozenset[str], one: ModulePass, module: ModuleOp) -> None:
        if not passes.isdisjoint((ALL, one.name)):
            sys.stderr.write(
                f"// -----// IR Dump {when} {type(one).__name__} ({one.name}) //----- //\n"
                f"{self.text(module)}\n\n"
            )

    # What goes wrong --------------------------------------------------------------------------

    @contextmanager
    def _telling(self, listener: Listener | None) -> Generator[None]:
        """Errors become diagnostics, after what was told before them."""
        try:
            yield
        except MlirError as error:
            self._drain(listener)
            for diagnostic in error.diagnostics:
                self.tell(diagnostic)
            raise _ChunkError from None
        except (StrettoError, DiagnosticException) as error:
            self._drain(listener)
            if isinstance(error, IllegalScheduleError):
                raise  # a bug of ours, however well it is worded
            self.tell(Diagnostic("error", str(error), self.file))
            raise _ChunkError from None
        except BaseException:
            self._drain(listener)
            raise
        self._drain(listener)

    def _drain(self, listener: Listener | None) -> None:
        if listener is None:
            return
        wanted = self.settings.remarks
        for diagnostic in listener.diagnostics:
            self.tell(diagnostic)
        for remark in listener.remarks:
            if not wanted.wanted or not wanted.filter.search(remark.text):
                continue
            if wanted.format is None:
                place = (remark.file, remark.line, remark.column)
                self.tell(Diagnostic("remark", f"{remark.loop}: {remark.message}", *place))
            else:
                self.remarks.append(remark)

    @contextmanager
    def _crashing(self, chunk: Chunk, index: int) -> Generator[None]:
        """An exception that no pass should let out: keep what makes it happen again."""
        try:
            yield
        except (_ChunkError, KeyboardInterrupt):
            raise
        except (MemoryError, OverflowError):
            message = "not enough memory; are the cycle counts of the input this large?"
            self.tell(Diagnostic("error", message, self.file))
            raise _ChunkError from None
        except (Exception, ArgSpecParseError) as error:  # the latter is a BaseException
            self.crashes += 1
            name = self.settings.passes[index].name
            reason = f"pass {name} crashed: {type(error).__name__}: {error}"
            told = self._keep(chunk, index, f"{reason}\n{_where(error)}")
            head, *rest = reason.splitlines()
            message = " ".join([head, *map(str.strip, rest)])
            note = Diagnostic("note", told, self.file)
            self.tell(Diagnostic("error", message, self.file, notes=(note,)))
            raise _ChunkError from None

    def _keep(self, chunk: Chunk, index: int, reason: str) -> str:
        """Write the reproducer; what to say of it."""
        target = Path(self.settings.reproducer)
        if self.crashes > 1:
            target = target.with_name(f"{target.stem}-{self.crashes}{target.suffix}")
        ir, passes = self._before(chunk, index)
        recipe = Recipe(write_pipeline(passes), self.settings.verify_each)
        try:
            write_text(str(target), write_reproducer(ir, recipe, reason))
        except StrettoError as error:
            return f"there is no reproducer: {error}"
        return f"a reproducer is in {target}; please report it"

    def _before(self, chunk: Chunk, index: int) -> tuple[str, Sequence[ModulePass]]:
        """The IR before a pass, made again, since the pass may have left it in pieces."""
        passes = self.settings.passes
        try:
            context = self.context()
            parsed = parse_module(chunk.text, self.file, context=context)
            module = parsed.module
            with listening(parsed):
                PassPipeline(passes[:index]).apply(context, module)
            return self.text(module), passes[index : index + 1]
        except Exception:  # the input and all the passes say the same, less shortly
            return chunk.text.lstrip("\n"), passes[: index + 1]


def _where(error: BaseException) -> str:
    """The way to the exception: function and line, without folders."""
    frames = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  at {f.name} ({Path(f.filename).name}:{f.lineno})" for f in frames)
