"""The fenced code blocks of the README and of the documentation, with where each begins."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
)
_FENCE = re.compile(r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\s*$")


@dataclass(frozen=True, slots=True)
class Snippet:
    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block; in a console block those after the prompt."""
        lines = [line.partition("  #")[0].rstrip() for line in self.text.splitlines()]
        if self.language == "console":
            return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in lines if line]


def snippets(*languages: str, pages: tuple[Path, ...] = PAGES) -> list[Snippet]:
    return [found for page in pages for found in _snippets(page) if found.language in languages]


def page(name: str) -> tuple[Path, ...]:
    return (ROOT / name,)


def _snippets(path: Path) -> Iterator[Snippet]:
    begin, language, title = 0, "", ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if begin and line == "```":
            yield Snippet(path, begin, language, title, "\n".join(lines[begin : number - 1]) + "\n")
            begin = 0
        elif not begin and (fence := _FENCE.match(line)):
            begin, language, title = number, fence["language"], fence["title"] or ""
