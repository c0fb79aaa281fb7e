"""A picture of what a run found: one row a category, the surest images of it.

python examples/contact_sheet.py demo/run demo/groceries docs/demo.jpg
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw

from newkind import load

SIDE, COLUMNS, MARGIN, TITLE = 128, 6, 6, 22


def main(run: Path, images: Path, out: Path) -> None:
    found = load(run)
    rows = []
    for category in sorted(found.categories, key=lambda c: -c.n_images):
        if category.status == "new" and category.n_images:
            members = sorted(
                (line for line in found.assignments if line.category == category.name),
                key=lambda line: -line.confidence,
            )
            step = max(len(members) // COLUMNS, 1)  # from the surest to the least sure, evenly
            rows.append((category, members[::step][:COLUMNS]))
    height = len(rows) * (SIDE + TITLE + MARGIN) + MARGIN
    sheet = Image.new("RGB", (COLUMNS * (SIDE + MARGIN) + MARGIN, height), "white")
    draw = ImageDraw.Draw(sheet)
    for r, (category, members) in enumerate(rows):
        top = MARGIN + r * (SIDE + TITLE + MARGIN)
        draw.text((MARGIN, top), f"{category.name}: {category.n_images} images", fill="black", font_size=16)
        for c, line in enumerate(members):
            with Image.open(images / line.file) as image:
                sheet.paste(image.convert("RGB").resize((SIDE, SIDE)), (MARGIN + c * (SIDE + MARGIN), top + TITLE))
    sheet.save(out, quality=80)
    print(f"{out}: {len(rows)} new categories")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
