"""The pages hold together: links and files exist, the README stays short, the site builds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit.snippets import PAGES, ROOT

PACKAGE = ROOT / "src" / "spillway"
README_WORDS = 1_100
WAY_FILES = 15
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(#[^)\s]*)?\)")
_PATH = re.compile(r"`([\w/.-]+/[\w.-]+\.(?:py|toml|md|yml|svg))`")
_LOADED = re.compile(r"<(?:script|img|link)\b[^>]*(?:src|href)=\"?(https?://[^\"\s>]*)")
_BUILT = {"docs/reference/job-file.md", "docs/reference/cli.md"}
_EXAMPLES = ("demo/", "NAME.py")


def text_of(path: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links(path: Path) -> None:
    """Of all pages, those that mkdocs does not see included."""
    for target, anchor in _LINK.findall(text_of(path)):
        found = (path.parent / target).resolve() if target else path
        if str(found.relative_to(ROOT)) in _BUILT:
            continue
        assert found.exists(), f"{path.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor.removeprefix("#") in anchors(found), f"{path.name} links to {target}{anchor}"


def anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_named_files_exist(path: Path) -> None:
    for name in _PATH.findall(text_of(path)):
        if name.endswith(_EXAMPLES[1]) or name.startswith(_EXAMPLES[0]):
            continue
        assert (PACKAGE / name).exists() or (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS


def test_a_rows_way_is_short() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    way = page.partition("## A row's way from source to sink")[2].partition("\n## ")[0]
    files = _PATH.findall(way)
    assert 0 < len(files) == len(set(files)) <= WAY_FILES
    assert all((PACKAGE / file).exists() for file in files)


def test_the_site_builds(tmp_path: Path) -> None:
    """`--strict`: a broken link or anchor, or a page that no menu names, is an error."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "reference" / "job-file.html").read_text(encoding="utf-8")
    assert "spill_share" in page
    for file in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link)\b[^>]*(?:src|href)=\"?(https?://[^\"\s>]*)", file.read_text()
        )
        assert not loaded, f"{file.name} loads {loaded[0]} from the network"
