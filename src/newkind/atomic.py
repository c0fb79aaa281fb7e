"""The one place that writes files: a file is there as a whole or not at all, also after a crash or a power failure.

A file is written under another name beside its place, synced to disk and renamed. The other name is created exclusively, so
that a link planted there is never followed, and with the usual permissions of a new file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from newkind.errors import NewkindError, RunError

__all__ = [
    "PARTIAL",
    "append_text",
    "check_companion",
    "check_folder",
    "check_writable",
    "create_empty",
    "file_lock",
    "finish_folder",
    "make_folder",
    "new_folder",
    "partial_of",
    "remove_folder",
    "remove_leftover",
    "replacing",
    "sync_folder",
    "to_bytes",
    "write_bytes",
    "write_companion",
    "write_errors",
    "write_json",
    "write_text",
]

PARTIAL = ".partial"
"""Suffix of a file that is being written."""
MAX_NAME = 255
"""Largest number of bytes in the name of a file, on all usual file systems."""
ADVICE = {
    errno.ENOSPC: "Free some disk space.",
    errno.EDQUOT: "Free some disk space, or raise the quota.",
    errno.EFBIG: "Use a file system, or a limit, that allows larger files.",
    errno.EACCES: "Check the permissions.",
    errno.EPERM: "Check the permissions.",
    errno.EROFS: "Use a folder that is not read-only.",
    errno.ENOENT: "Check that the folder exists.",
    errno.ENOTDIR: "Check that the folder exists.",
    errno.EIO: "Check the disk.",
}
"""What to do first, by the reason."""
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR)
"""Errors of systems that cannot sync a folder."""


@contextmanager
def write_errors(
    path: Path, *, error: type[NewkindError] = RunError, fix: str = "Then repeat the command."
) -> Iterator[None]:
    """Raise `error` with the code `cannot-write` instead of an OSError. Its fix starts with what the reason asks for.

    Parameters
    ----------
    path : Path
        File or folder that is written.
    error : type of NewkindError, default=RunError
        Class of the error.
    fix : str, optional
        What to do next. Default: repeat the command.
    """
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or problem
        advice = ADVICE.get(problem.errno or 0, "")
        raise error(
            f"{path} could not be written ({reason}).", fix=f"{advice} {fix}".strip(), code="cannot-write", path=path
        ) from None


def partial_of(path: Path) -> Path:
    """Name under which a file is written until it is complete; a digest for a name that would become too long."""
    name = path.name + PARTIAL
    if len(os.fsencode(name)) > MAX_NAME:
        name = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:32] + PARTIAL
    return path.with_name(name)


@contextmanager
def replacing(path: Path, *, error: type[NewkindError] = RunError, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Yield a file to write to; on success it is synced to disk and replaces `path`, otherwise it is removed.

    Parameters
    ----------
    path : Path
        File to create or replace.
    error : type of NewkindError, default=RunError
        Raised instead of an OSError.
    overwrite : bool, default=True
        Whether a file that is there is replaced; otherwise it is an error.
    """
    partial = partial_of(path)
    with write_errors(path, error=error):
        file = _create(partial)
        try:
            with file:
                ours = os.fstat(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not _is(partial, ours):
                raise OSError(errno.EBUSY, "another process writes the same file")
            _publish(partial, path, overwrite=overwrite)
            sync_folder(path.parent)
        finally:
            with suppress(OSError):
                if _is(partial, ours):
                    partial.unlink()


def remove_leftover(path: Path) -> None:
    """Remove the second name of a complete file, which a process has that was killed while it gave the file its name."""
    partial = partial_of(path)
    with suppress(OSError):
        if os.path.samestat(os.lstat(partial), os.lstat(path)):
            partial.unlink()


def _create(partial: Path) -> BinaryIO:
    """A new file; what a killed process left, or what somebody planted, is removed and never written through."""
    with suppress(FileNotFoundError):
        partial.unlink()
    return os.fdopen(os.open(partial, NEW_FILE, 0o666), "wb")


def _remove(probe: Path) -> None:
    """Remove a file that only showed that it can be written; once more if that fails, because no later command knows its name."""
    try:
        probe.unlink()
    except OSError:
        probe.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder and what is in it; once more if something fails, because no later command looks for it. Raises nothing."""
    for _ in range(2):
        if os.path.lexists(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), status)
    except FileNotFoundError:
        return False


def _publish(partial: Path, path: Path, *, overwrite: bool) -> None:
    """Give a complete file its name. Linking fails where a file is in the way; renaming would replace it."""
    if not overwrite:
        try:
            os.link(partial, path)
        except FileExistsError:
            raise
        except OSError as problem:  # a file system without hard links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from problem
        else:
            partial.unlink()
            return
    partial.replace(path)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system allows to sync a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as problem:
        if problem.errno not in NO_FOLDER_SYNC:
            raise


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, durably. Raises OSError."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


UNFINISHED = ".newkind-unfinished"
"""File in a folder that is being filled."""


@contextmanager
def new_folder(path: Path, *, error: type[NewkindError] = RunError) -> Iterator[Path]:
    """Yield a folder to fill beside its place; on success it gets its name, otherwise it is removed.

    Parameters
    ----------
    path : Path
        Folder to create. It must not exist, or be empty.
    error : type of NewkindError, default=RunError
        Raised instead of an OSError, and with the code `exists` if something is in the way.
    """
    partial = partial_of(path)
    if os.path.lexists(path) and not _is_empty(path):
        finish_folder(path)
        raise error(f"{path} exists already. It was not changed.", fix="Use another `out`.", code="exists", file=path)
    is_ours = not partial.is_symlink() and ((partial / UNFINISHED).is_file() or _is_empty(partial))
    if os.path.lexists(partial) and not is_ours:
        raise error(f"{partial} is in the way.", fix="Use another `out`.", code="exists", file=partial)
    with write_errors(path, error=error):
        _remove_unfinished(partial)  # of a process that was killed
        make_folder(partial)
        (partial / UNFINISHED).touch(exist_ok=False)
        try:
            yield partial
            sync_folder(partial)
            if path.exists():
                path.rmdir()
            partial.rename(path)
            sync_folder(path.parent)
        except BaseException:
            _remove_unfinished(partial)
            raise
        _remove(path / UNFINISHED)  # last: until then a repeated command knows whose folder it is
        sync_folder(path)


def finish_folder(path: Path) -> None:
    """Remove the mark of a complete folder, whose process was killed after the folder had got its name."""
    if not path.is_symlink():
        with suppress(OSError):
            (path / UNFINISHED).unlink()


def _is_empty(folder: Path) -> bool:
    """Whether there is a folder, no link, without anything in it."""
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())


def _remove_unfinished(folder: Path) -> None:
    """Remove a folder that was being filled; its mark goes last, so that what is left is known by it. Raises nothing."""
    with suppress(OSError):
        for place in folder.iterdir():
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
            elif place.name != UNFINISHED:
                place.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def file_lock(path: Path) -> FileLock:
    """Lock of a file, which is created if it does not exist.

    Raises
    ------
    OSError
        If there is a link, a second name of another file, or a pipe at its place: the lock is emptied when it is taken.
    """
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(errno.EEXIST, "a file that is not a lock is in its place", str(path))
    return FileLock(path)


def check_writable(path: Path, *, error: type[NewkindError] = RunError, fix: str = "Use another `out`.") -> None:
    """Raise `error` (`cannot-write`) if a file cannot be created, before hours of work for it. Leaves nothing behind."""
    partial = partial_of(path)
    with write_errors(path, error=error, fix=fix):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        _create(partial).close()
        _remove(partial)


def check_folder(folder: Path) -> None:
    """Raise RunError (`cannot-write`) if nothing can be written in a folder that exists or may be created later."""
    place = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if _takes_unnamed_file(place):
        return
    probe = partial_of(place / f"newkind-{os.getpid()}")
    with write_errors(folder, fix="Use another `out`."):
        _create(probe).close()
        _remove(probe)


def _takes_unnamed_file(folder: Path) -> bool:
    """Whether a file without a name can be created in a folder, of which a killed process leaves nothing; only Linux has these."""
    try:
        os.close(os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600))
    except (AttributeError, OSError):
        return False
    return True


def create_empty(path: Path) -> None:
    """Create an empty file that does not exist yet. Raises OSError."""
    os.close(os.open(path, NEW_FILE, 0o666))


def write_bytes(path: Path, content: bytes | memoryview, *, error: type[NewkindError] = RunError) -> None:
    """Write a file atomically."""
    with replacing(path, error=error) as file:
        file.write(content)


def check_companion(path: Path, text: str, *, error: type[NewkindError] = RunError) -> None:
    """Raise `error` (`exists`) if `write_companion` cannot create a file, because there is another one."""
    if os.path.lexists(path) and not (path.is_file() and path.read_bytes() == to_bytes(text)):
        raise error(f"{path} exists already. It was not changed.", fix="Use another `out`.", code="exists", file=path)


def write_companion(path: Path, text: str, *, error: type[NewkindError] = RunError) -> None:
    """Create the first of two files that belong together. One with this text, which a killed process left, is kept."""
    check_companion(path, text, error=error)
    if not path.exists():
        with replacing(path, error=error, overwrite=False) as file:
            file.write(to_bytes(text))
    remove_leftover(path)


def write_text(path: Path, text: str, *, error: type[NewkindError] = RunError) -> None:
    """Write a text file atomically, encoded by `to_bytes`."""
    write_bytes(path, to_bytes(text), error=error)


def write_json(path: Path, content: Any, *, error: type[NewkindError] = RunError) -> None:
    """Write a JSON file atomically; NaN and infinity are not allowed."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n", error=error)


def append_text(path: Path, text: str, *, error: type[NewkindError] = RunError) -> None:
    """Append to a file and sync it to disk; if that fails, the file is as it was. Links are not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with write_errors(path, error=error), os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0) as file:
        size, rest = os.fstat(file.fileno()).st_size, memoryview(to_bytes(text))
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def to_bytes(text: str) -> bytes:
    """UTF-8; file names that are not valid UTF-8 keep their bytes, other invalid characters become escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
