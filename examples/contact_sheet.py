"""Draw the new categories of a run: one row per category, with some of its images.

python examples/contact_sheet.py demo/run demo/groceries docs/demo.jpg
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw

import newkind

SIDE, COLUMNS, MARGIN, TITLE = 128, 6, 6, 22


def main(run: Path, images: Path, out: Path) -> None:
    """Draw the run in the folder `run`, whose images are in the folder `images`, into the file `out`."""
    rows = chosen_files(newkind.load(run))
    height = len(rows) * (SIDE + TITLE + MARGIN) + MARGIN
    sheet = Image.new("RGB", (COLUMNS * (SIDE + MARGIN) + MARGIN, height), "white")
    draw = ImageDraw.Draw(sheet)
    for row, (title, files) in enumerate(rows.items()):
        top = MARGIN + row * (SIDE + TITLE + MARGIN)
        draw.text((MARGIN, top), title, fill="black", font_size=16)
        for column, file in enumerate(files):
            with Image.open(images / file) as image:
                thumbnail = image.convert("RGB").resize((SIDE, SIDE))
            sheet.paste(thumbnail, (MARGIN + column * (SIDE + MARGIN), top + TITLE))
    sheet.save(out, quality=80)
    print(f"{out}: {len(rows)} new categories")


def chosen_files(run: newkind.Discovery) -> dict[str, list[str]]:
    """Title and image files of each new category, largest first."""
    rows = {}
    for category in sorted(run.categories, key=lambda category: -category.n_images):
        if category.status == "new" and category.n_images:
            members = [line for line in run.assignments if line.category == category.name]
            members.sort(key=lambda line: -line.confidence)
            step = max(len(members) // COLUMNS, 1)  # evenly from the highest confidence to the lowest
            title = f"{category.name}: {category.n_images} images"
            rows[title] = [line.file for line in members[::step][:COLUMNS]]
    return rows


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
