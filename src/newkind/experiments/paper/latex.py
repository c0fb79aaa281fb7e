"""LaTeX tables with booktabs. All text is escaped."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["escape", "latex_table"]

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "ε": r"$\varepsilon$",
    "–": "--",
    "\n": " ",
}


def escape(text: str) -> str:
    r"""Escape the special characters of LaTeX.

    Parameters
    ----------
    text : str
        Plain text.

    Returns
    -------
    str

    Examples
    --------
    >>> escape("50 % & more")
    '50 \\% \\& more'
    """
    return "".join(SPECIAL.get(character, character) for character in text)


def latex_table(
    *,
    label: str,
    caption: str,
    titles: Sequence[str],
    is_text: Sequence[bool],
    rows: Sequence[Sequence[str]],
    rules: Sequence[int] = (),
) -> str:
    r"""A `table` environment, for documents with \usepackage{booktabs}.

    Parameters
    ----------
    label : str
        Label for references; not escaped.
    caption : str
        Caption.
    titles : sequence of str
        Headings of the columns.
    is_text : sequence of bool
        Whether each column is aligned to the left; otherwise to the right.
    rows : sequence of sequence of str
        Cells.
    rules : sequence of int, default=()
        Indices of rows before which a line is drawn.

    Returns
    -------
    str
    """

    def line(cells: Sequence[str]) -> str:
        return "  " + " & ".join(map(escape, cells)) + r" \\"

    body = []
    for i, row in enumerate(rows):
        body += [r"  \midrule"] if i in rules else []
        body.append(line(row))
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in is_text)}}}",
            r"  \toprule",
            line(titles),
            r"  \midrule",
            *body,
            r"  \bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
