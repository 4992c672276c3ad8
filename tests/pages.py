"""Pages that tell the truth: every block of code in README and docs is run, or read, or both.

```console          `$ command` and what it prints; `…` stands for what differs from run to run
```pycon            `>>> line` and what it prints
```python           runs, in order within the page, `stretto` being imported
```python gpu       needs Triton and a GPU: syntax, names and keywords of stretto are checked
```sh               commands; those of stretto run, of others target, file or extra is looked for
```json toml mlir   read as what they are: documents of ours, machines, modules
```mlir copy.mlir   a file: written for the commands below, or, where it exists, an excerpt of it;
                    one called broken is not read here: the commands show what is said of it
```                 a picture

A page runs in a folder of its own, in which only the examples lie.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from markdown_it import MarkdownIt

import stretto
from documents import parse_loop
from stretto.cli.main import main as stretto_main
from stretto.ir.opt.__main__ import main as stretto_opt_main
from stretto.machine import read_machine

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ANYTHING = "…"


class PageError(Exception):
    """A block that does not do what its page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands behind the fence, and what is inside."""

    line: int
    language: str
    word: str
    text: str


@dataclass
class Page:
    """A page on its way: the folder it runs in, and what its Python has defined so far."""

    name: str
    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page", "stretto": stretto})


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for token in MarkdownIt("commonmark").parse(text):
        line = (token.map or [0])[0] + 1
        if token.type == "code_block":
            raise PageError(f"line {line}: an indented block; give it a fence")
        if token.type == "fence":
            language, word, *more = [*token.info.split(), "", ""]
            if any(more):
                raise PageError(f"line {line}: ```{token.info}: two words at most")
            yield Block(line, language, word, token.content)


def run_page(name: str, text: str, folder: Path) -> list[Block]:
    """Run all blocks of a page in a folder; those that ran."""
    (folder / "examples").symlink_to(ROOT / "examples")
    page = Page(name, folder)
    done: list[Block] = []
    with contextlib.chdir(folder):
        for block in blocks(text):
            check = CHECKS.get(block.language)
            try:
                if check is None:
                    raise PageError(f"```{block.language}: expected one of {', '.join(CHECKS)}")
                if block.word in ("", "gpu") or _new_file(block):
                    check(page, block)
            except Exception as error:
                raise PageError(f"{name}:{block.line}: {error}") from error
            done.append(block)
    return done


def _new_file(block: Block) -> bool:
    """Write the file that a block is, which is still to be read; False for an excerpt of one."""
    path = Path(block.word)
    if not path.exists():
        path.write_text(block.text, encoding="utf-8")
        return path.stem != "broken"
    whole = textwrap.dedent(path.read_text(encoding="utf-8")).splitlines()
    shown = [line.strip() for line in block.text.splitlines() if line.strip()]
    if not alike([line.strip() for line in whole if line.strip()], [ANYTHING, *shown, ANYTHING]):
        raise PageError(f"does not occur in {block.word}")
    return False


def alike(lines: list[str], shown: list[str]) -> bool:
    """Whether lines are as shown; `…` is any lines where it stands alone, else any text."""
    pattern = "".join(
        r"(?:.*\n)*?"
        if line.strip() == ANYTHING
        else ".*?".join(re.escape(part) for part in line.split(ANYTHING)) + r"\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines)) is not None


# Commands


def command(line: str) -> tuple[int, str]:
    """Run a command line of ours in this process; its exit code and all it prints."""
    program, *arguments = shlex.split(line, comments=True)
    tool = {"stretto": stretto_main, "stretto-opt": stretto_opt_main}.get(program)
    if tool is None:
        raise PageError(f"{program}: only stretto and stretto-opt are run")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = tool(arguments)
        except SystemExit as end:  # --help, --version
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue()


def _console(_page: Page, block: Block) -> None:
    first, *sessions = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if first or not sessions:
        raise PageError("a console block begins with `$ `")
    for session in sessions:
        line, _, shown = session.partition("\n")
        _, printed = command(line)
        if not alike(printed.splitlines(), shown.splitlines()):
            raise PageError(f"$ {line}\nprints\n{printed}not\n{shown}")


def _sh(_page: Page, block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = [w for w in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", w)]
        if not words:
            continue
        known = {"make": _make, "pip": _pip, "python": _script, ".venv/bin/python": _script}
        if words[0] in known:
            known[words[0]](words[1:])
            continue
        code, printed = command(line)
        if code:
            raise PageError(f"{line}\nends with {code}:\n{printed}")


def _make(targets: list[str]) -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        if not re.search(rf"^{re.escape(target)}:", rules, re.MULTILINE):
            raise PageError(f"make {target}: there is no such target")


def _pip(words: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    match words:
        case ["install", what] if found := re.fullmatch(r"(?:stretto|\.)(?:\[(\w+)\])?", what):
            if found[1] and found[1] not in project["optional-dependencies"]:
                raise PageError(f"pip install {what}: there is no such extra")
        case _:
            raise PageError(f"pip {' '.join(words)}: only stretto is installed")


def _script(words: list[str]) -> None:
    if not (ROOT / words[0]).is_file():
        raise PageError(f"{words[0]}: there is no such file")
    source = (ROOT / words[0]).read_text(encoding="utf-8")
    for option in words[1:]:
        if option.startswith("--") and f'"{option.partition("=")[0]}"' not in source:
            raise PageError(f"{words[0]} has no option {option}")


# Python


def _python(page: Page, block: Block) -> None:
    code = "\n" * block.line + block.text  # so that a traceback has the page's lines
    tree = ast.parse(code, page.name)
    if block.word == "gpu":
        for node in ast.walk(tree):
            _check_names(node)
        return
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, page.name, "exec"), page.names)


def _check_names(node: ast.AST) -> None:
    """Names of stretto exist, and its functions take the keywords they are given."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "stretto":
                importlib.import_module(alias.name)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stretto":
        for alias in node.names:
            _find(f"{node.module}.{alias.name}")
    elif isinstance(node, ast.Attribute | ast.Call):
        called = node.func if isinstance(node, ast.Call) else node
        dotted = ast.unparse(called)
        if re.fullmatch(r"stretto(\.\w+)+", dotted):
            what = _find(dotted)
            given = node.keywords if isinstance(node, ast.Call) else []
            if given:
                takes = inspect.signature(what).parameters
                anything = any(one.kind is one.VAR_KEYWORD for one in takes.values())
                for keyword in given:
                    if keyword.arg and keyword.arg not in takes and not anything:
                        raise PageError(f"{dotted} takes no {keyword.arg}")


def _find(dotted: str) -> Any:
    parts = dotted.split(".")
    what: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(what, part):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(".".join(parts[:i]))
        what = getattr(what, part)
    return what


def _pycon(page: Page, block: Block) -> None:
    text = block.text.replace(ANYTHING, "...")
    test = doctest.DocTestParser().get_doctest(text, page.names, page.name, page.name, block.line)
    test.globs = page.names  # the names of the page, not a copy of them
    told: list[str] = []
    options = doctest.ELLIPSIS | doctest.REPORT_ONLY_FIRST_FAILURE
    done = doctest.DocTestRunner(optionflags=options).run(test, out=told.append, clear_globs=False)
    if done.failed or not done.attempted:
        raise PageError("".join(told) or "shows no `>>> `")


# Documents


@cache
def _schemas() -> dict[str, Any]:
    """The published schemas, by the name that documents of it have."""
    return {
        f"stretto.{path.name.removesuffix('.schema.json')}/1": json.loads(path.read_text("utf-8"))
        for path in (ROOT / "src").rglob("*.schema.json")
    }


def _json(_page: Page, block: Block) -> None:
    document = json.loads(block.text)
    name = document["schema"]
    jsonschema.validate(document, _schemas()[name])
    if name == "stretto.loop/1":
        parse_loop("loop.json", block.text)


def _toml(_page: Page, block: Block) -> None:
    if "project" not in tomllib.loads(block.text):  # that of a package, else a machine
        read_machine("machine.toml", block.text, {})


def _mlir(page: Page, block: Block) -> None:
    file = page.folder / (block.word or "module.mlir")
    file.write_text(block.text, encoding="utf-8")
    code, printed = command(f"stretto-opt {shlex.quote(str(file))} --split-input-file")
    if code:
        raise PageError(printed)


def _picture(_page: Page, block: Block) -> None:
    if re.search(r"^\$ |error:", block.text, re.MULTILINE):
        raise PageError("what a command prints is shown in ```console")


CHECKS: dict[str, Callable[[Page, Block], None]] = {
    "console": _console,
    "pycon": _pycon,
    "python": _python,
    "sh": _sh,
    "json": _json,
    "toml": _toml,
    "mlir": _mlir,
    "": _picture,
}
