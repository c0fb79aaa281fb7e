"""MkDocs hook: pages of the documentation site that are written outside of docs/.

README, CONTRIBUTING, CHANGELOG and the measurements in benchmarks/results become pages. Links between Markdown files are
written as paths in the repository, so that they work there; this hook translates them into links of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"} | {
    f"benchmarks/results/{path.name}": f"results/{path.name}"
    for path in sorted((ROOT / "benchmarks/results").glob("*.md"))
}
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages; called by MkDocs after it has collected the files of docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Translate the links of a page; called by MkDocs before it renders the page."""
    return site_links(markdown, page.file.src_uri)


def site_links(markdown: str, page: str) -> str:
    """Markdown of a page with its links from repository paths to site paths.

    A link to a file that is not on the site stays as it is, and the strict build fails.
    """
    source = SOURCES.get(page, f"docs/{page}")

    def translated(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        target = PAGES.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(target, posixpath.dirname(page) or ".") + (link[2] or "")

    return LINK.sub(translated, markdown)
