"""Rows of text: a table on a terminal, tab-separated lines in a pipe."""

import sys
from collections.abc import Iterable, Sequence

import rich_click as click
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_rows(heads: Sequence[str], rows: Iterable[Sequence[str]], none: str = "") -> None:
    """Print the rows, under `heads` if there are any; on a terminal `none` where there is no row. In a pipe every line
    is a row: no heads, and white space in a cell is made single spaces."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(" ".join(cell.split()) for cell in row))
        return
    table = Table(box=None, pad_edge=False, show_header=bool(heads), header_style="bold")
    for row in rows:
        while len(table.columns) < len(row):
            # Folded, not cut: a path without its end is no path. The name in front stays on one line.
            head = heads[len(table.columns)] if heads else ""
            table.add_column(head, overflow="fold", no_wrap=not table.columns)
        table.add_row(*map(Text, row))
    if table.row_count or not none:
        Console().print(table)
    else:
        click.echo(none)
