"""What is kept on disk between runs: where, for which Stretto, and whether it is to be believed.

    ~/.cache/stretto/kernels/           kernels made at their launch
    ~/.cache/stretto/tuned/             configurations that were chosen
    ~/.cache/stretto/answers-2.sqlite   loops that were solved
    ~/.cache/stretto/secret             what entries are sealed with

`STRETTO_CACHE` names another folder; else `XDG_CACHE_HOME` counts, as everywhere.

What is kept is run, or taken for proved. So folders and files are the user's own, and nobody else
may write to them: they are made so, and looked at again whenever they are read.

    open a folder, look at it  ──►  open what is in it from there  ──►  read what was looked at
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import stat
import tempfile
import warnings
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from stretto.errors import StrettoError

SECRET_BYTES = 32


class UntrustedError(StrettoError):
    """Something in a cache that somebody else could have written."""

    def __init__(self, path: Path, why: str, remedy: str = "remove it") -> None:
        self.path, self.why, self.remedy = path, why, remedy
        instead = "or name a folder of your own in STRETTO_CACHE"
        super().__init__(f"{path} {why}; {remedy}, {instead}")

    def __reduce__(self) -> tuple[type[UntrustedError], tuple[Path, str, str]]:
        return UntrustedError, (self.path, self.why, self.remedy)


def cache_folder() -> Path:
    """Where the user's caches of ours are."""
    own = os.environ.get("STRETTO_CACHE", "")
    if own:
        return Path(own).absolute()
    said = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(said) if said and Path(said).is_absolute() else Path.home() / ".cache"
    return base / "stretto"


@cache
def package_sum() -> str:
    """A number of this package's own files and of what it is built on: others answer otherwise."""
    root = Path(__file__).parent
    found = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            found.update(f"{file.relative_to(root)}\0".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    for name in ("numpy", "ortools", "xdsl"):
        found.update(f"{name} {version_of(name)}\0".encode())
    return found.hexdigest()


def version_of(package: str) -> str:
    """The version of a package that is installed, else nothing."""
    from importlib import metadata  # noqa: PLC0415 - slow to load, and seldom asked

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


# What is the user's own -------------------------------------------------------------------


def make_own(root: Path, *below: str) -> Path:
    """A folder of a cache, made where it is missing; nobody else may write to what is made."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = root
    for name in below:
        folder /= name
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_own(file: Path, data: bytes, *, once: bool = False) -> None:
    """A file that is the user's alone, there whole or not at all; `once`: the first one stays."""
    descriptor, made = tempfile.mkstemp(prefix=".making-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        if not once:
            os.replace(made, file)
            return
        with suppress(FileExistsError):
            os.link(made, file)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


def read_own(root: Path, *below: str, limit: int) -> bytes:
    """What a file of a cache holds; OSError where there is none, or where it has more bytes.

    UntrustedError where somebody else could have written it: where the folder, one on the way or
    the file belongs to another, or others may write to it, or what is below the folder is a link.
    """
    if hasattr(os, "geteuid"):
        with _own(root, below, file=True) as descriptor:
            found = _read(os.dup(descriptor), limit)
    else:  # a system whose files have no such owners
        found = _read(os.open(root.joinpath(*below), os.O_RDONLY), limit)
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"has more than {limit:,} bytes", str(root.joinpath(*below)))
    return found


def check_own(root: Path, *below: str) -> None:
    """UntrustedError where a folder of a cache, or one on the way to it, is not the user's own."""
    if hasattr(os, "geteuid"):
        with _own(root, below, file=False):
            pass


def _read(descriptor: int, limit: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit + 1)


@contextmanager
def _own(root: Path, below: Sequence[str], *, file: bool) -> Generator[int]:
    """What is the user's own, opened; each is opened from the folder that was looked at."""
    with ExitStack() as stack:
        path = root
        found = stack.enter_context(_opened(path, None, os.O_DIRECTORY))
        for name in below:
            path /= name
            last = file and path == root.joinpath(*below)
            kind = os.O_NONBLOCK if last else os.O_DIRECTORY
            found = stack.enter_context(_opened(path, found, kind | os.O_NOFOLLOW))
        yield found


@contextmanager
def _opened(path: Path, parent: int | None, flags: int) -> Generator[int]:
    name = path if parent is None else path.name
    try:
        found = os.open(name, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=parent)
    except OSError as error:
        if parent is not None and stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode):
            raise UntrustedError(path, "is a symbolic link") from error
        raise
    try:
        status = os.fstat(found)
        if status.st_uid != os.geteuid():
            raise UntrustedError(path, f"belongs to user {status.st_uid}, not to you")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UntrustedError(path, "may be written by others", f"run `chmod go-w {path}`")
        if not flags & os.O_DIRECTORY and not stat.S_ISREG(status.st_mode):
            raise UntrustedError(path, "is no regular file")
        yield found
    finally:
        os.close(found)


_told: set[str] = set()


def tell(error: UntrustedError) -> None:
    """Say what is wrong with a cache, once a process."""
    if str(error) not in _told:
        _told.add(str(error))
        warnings.warn(f"not taken from the cache, but made anew: {error}", stacklevel=2)


# What this user's Stretto wrote -----------------------------------------------------------


def seal(*parts: bytes) -> str:
    """A sum that only this user's Stretto can make, for what cannot be checked once it is read.

    OSError or UntrustedError where its secret cannot be kept.
    """
    found = hmac.new(_secret(cache_folder()), digestmod="sha256")
    for part in parts:
        found.update(len(part).to_bytes(8) + part)
    return found.hexdigest()


@cache
def _secret(root: Path) -> bytes:
    file = make_own(root) / "secret"
    if not file.exists():
        write_own(file, os.urandom(SECRET_BYTES), once=True)
    found = read_own(root, "secret", limit=SECRET_BYTES)
    if len(found) < SECRET_BYTES:
        raise UntrustedError(file, f"has {len(found)} bytes, not {SECRET_BYTES}")
    return found
