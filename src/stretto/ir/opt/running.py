"""One chunk of the input through the passes.

    text ──► parse ──► [dump] pass [verify] [dump] ──► ... ──► print
               │               │
               └── errors      ├── errors: the chunk ends here
                               └── any other exception: a reproducer, then the chunk ends here

Diagnostics leave in the order they arise, so that they stand between the dumps where they belong.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException

from stretto.errors import StrettoError
from stretto.files import write_text
from stretto.ir.diagnostics import Diagnostic, MlirError
from stretto.ir.opt import reproducer
from stretto.ir.opt.options import Settings
from stretto.ir.opt.pipeline import write_pipeline
from stretto.ir.opt.splitting import Chunk
from stretto.ir.opt.timing import OUTPUT, PARSER, VERIFIER, Timer
from stretto.ir.parsing import Parsed, is_blank, parse_module, verify_module
from stretto.ir.remarks import Listener, Remark, listening
from stretto.solve import IllegalScheduleError


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
        Printer(
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
                self._verify(parsed)
            return parsed

    def _verify(self, parsed: Parsed) -> None:
        faults = verify_module(parsed)
        if faults:
            raise MlirError(faults)

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
        if self.settings.dumps.wants_before(one.name):
            self._dump("Before", one, module)
        with listening(parsed) as listener, self._crashing(chunk, index), self._telling(listener):
            with self.timer.measure(one.name):
                one.apply(context, module)
            if self.settings.verify_each:
                self._verify_after(chunk, parsed, index)
        if self.settings.dumps.wants_after(one.name):
            self._dump("After", one, module)

    def _dump(self, when: str, one: ModulePass, module: ModuleOp) -> None:
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
        recipe = reproducer.Recipe(write_pipeline(passes), self.settings.verify_each)
        try:
            write_text(str(target), reproducer.write(ir, recipe, reason))
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
                for one in passes[:index]:
                    one.apply(context, module)
            return self.text(module), passes[index : index + 1]
        except Exception:  # the input and all the passes say the same, less shortly
            return chunk.text.lstrip("\n"), passes[: index + 1]


def _where(error: BaseException) -> str:
    """The way to the exception: function and line, without folders."""
    frames = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  at {f.name} ({Path(f.filename).name}:{f.lineno})" for f in frames)
