"""A drawing is written shorter, and shows the same."""

from __future__ import annotations

import re

from trisect.report.figures import style, svg

ROW = '<path d="M {0} 2 \nL {1} 2 \nL {1} 4 \nL {0} 4 \nL {0} 2 \n" style="{2}"/>\n'  # a cell, as matplotlib writes it


def test_cells_drawn_alike_become_one_path_of_the_same_rectangles() -> None:
    cells = ROW.format("1.239", "3", "dark") + ROW.format("3", "5", "pale") + ROW.format("5", "7", "dark")
    drawn = svg.annotate(f'<g id="{style.tag("e", "s", "hover")}">{cells}</g>')
    assert re.findall(r'<path d="([^"]*)" style="([^"]*)"', drawn) == [
        ("M1.23 2H3V4H1.23Z M5 2H7V4H5Z", "dark"),
        ("M3 2H5V4H3Z", "pale"),
    ]
    assert drawn.startswith('<g data-experiment="e" data-section="s"><title>hover</title>')


def test_what_is_no_rectangle_keeps_its_corners() -> None:
    line = '<path d="M 1 2 \nL 3 5 \nL 4 5 \n" style="x"/>'
    assert svg.annotate(line) == line.replace("\n", "")


def test_only_turns_by_nothing_are_dropped() -> None:
    assert svg.annotate('<text transform="rotate(-0 1 2)">a</text>') == "<text>a</text>"
    assert "rotate(-90 1 2)" in svg.annotate('<text transform="rotate(-90 1 2)">a</text>')
