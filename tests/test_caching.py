"""What is kept on disk is taken only where nobody but the user could have written it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stretto import caching
from stretto.caching import (
    UntrustedError,
    check_own,
    make_own,
    package_sum,
    read_own,
    seal,
    write_own,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one file in a folder, made where files are for a group to write."""
    monkeypatch.setattr(caching, "_told", set[str]())
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "cache"))
    before = os.umask(0o002)
    try:
        write_own(make_own(tmp_path / "cache", "folder") / "file", b"kept")
    finally:
        os.umask(before)
    return tmp_path / "cache"


def test_what_is_made_is_the_users_alone_whatever_the_umask(root: Path) -> None:
    modes = [path.stat().st_mode & 0o777 for path in (root, root / "folder", root / "folder/file")]
    assert modes == [0o700, 0o700, 0o600]
    assert read_own(root, "folder", "file", limit=4) == b"kept"
    check_own(root, "folder")


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("where", "how", "told"),
    [
        (".", "770", "may be written by others; run `chmod go-w "),
        ("folder", "702", "may be written by others; run `chmod go-w "),
        ("folder/file", "620", "may be written by others; run `chmod go-w "),
        ("folder", "linked", "folder is a symbolic link; remove it, or name a folder of your own"),
        ("folder/file", "linked", "file is a symbolic link; remove it"),
        ("folder/file", "a pipe", "file is no regular file; remove it"),
    ],
)
def test_what_others_could_have_written_is_not_read(
    where: str, how: str, told: str, root: Path
) -> None:
    if how == "linked":
        linked(root / where)
    elif how == "a pipe":
        (root / where).unlink()
        os.mkfifo(root / where, 0o600)
    else:
        (root / where).chmod(int(how, 8))
    with pytest.raises(UntrustedError, match=told):
        read_own(root, "folder", "file", limit=4)


def test_what_belongs_to_another_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(UntrustedError, match=f"cache belongs to user {me}, not to you; remove it"):
        read_own(root, "folder", "file", limit=4)
    with pytest.raises(UntrustedError):
        check_own(root, "folder")


def test_the_folder_itself_may_be_a_link_to_one_of_the_users_own(root: Path) -> None:
    linked(root)
    assert read_own(root, "folder", "file", limit=4) == b"kept"


def test_more_than_the_limit_is_not_read(root: Path) -> None:
    with pytest.raises(OSError, match="has more than 3 bytes"):
        read_own(root, "folder", "file", limit=3)
    with pytest.raises(FileNotFoundError):
        read_own(root, "folder", "none", limit=3)


def test_a_system_without_owners_reads_what_is_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "geteuid")
    assert read_own(root, "folder", "file", limit=4) == b"kept"
    check_own(root, "folder")


def test_it_is_told_once(root: Path) -> None:
    error = UntrustedError(root, "is odd")
    with pytest.warns(UserWarning, match="not taken from the cache, but made anew: .* is odd"):
        caching.tell(error)
    caching.tell(error)  # warnings are errors here


def test_a_seal_is_of_its_parts_and_of_a_secret_that_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = seal(b"ab", b"c")
    assert first != seal(b"a", b"bc")
    caching._secret.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert seal(b"ab", b"c") == first
    assert (root / "secret").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "other"))
    assert seal(b"ab", b"c") != first


def test_a_secret_that_others_may_write_seals_nothing(root: Path) -> None:
    seal(b"")
    caching._secret.cache_clear()  # pyright: ignore[reportPrivateUsage]
    (root / "secret").chmod(0o666)
    with pytest.raises(UntrustedError, match="secret may be written by others"):
        seal(b"")
    (root / "secret").chmod(0o600)
    (root / "secret").write_bytes(b"short")
    with pytest.raises(UntrustedError, match="secret has 5 bytes, not 32"):
        seal(b"")


def test_the_sum_of_the_package_has_compiled_files_and_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "caching.py"))
    before = package_sum.__wrapped__()
    (tmp_path / "moving.so").write_bytes(b"machine code")
    after = package_sum.__wrapped__()
    (tmp_path / "moving.pyc").write_bytes(b"byte code, which follows from the rest")
    assert package_sum.__wrapped__() == after
    monkeypatch.setattr(caching, "version_of", str.upper)
    assert len({before, after, package_sum.__wrapped__()}) == 3
