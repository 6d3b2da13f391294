"""A figure as SVG text: the same bytes for the same data, with values on hover."""

import html
import json
import re
from io import StringIO
from urllib.parse import unquote

from matplotlib.figure import Figure

from trisect.report.figures.style import MUTED, TAG, WIDTH_IN, theme

_REASON = "data-nothing-drawn"
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_TAGGED = re.compile(rf'<g id="{TAG}([^"]*)">')
_PATH = re.compile(r' d="[^"]*"')
_FINE = re.compile(r"(\.\d\d)\d+")
_FLAT = re.compile(r' transform="rotate\(-0 [^"]*\)"')
_RECTANGLE = re.compile(r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 L \1 \2 ")
_PATHS = re.compile(r'(?:<path d="[^"]*"[^>]*/>\s*){2,}')
_ONE_PATH = re.compile(r'<path d="([^"]*)"([^>]*)/>')
_REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')


def sentence(text: str) -> str:
    """A document that says why there is nothing to draw."""
    with theme():
        figure = Figure(figsize=(WIDTH_IN, 0.6))
        figure.text(0.02, 0.5, text, va="center", color=MUTED)
    return render(figure).replace("<svg", f'<svg {_REASON}="{html.escape(text)}"', 1)


def reason(svg: str) -> str:
    """Why a document of `draw` shows nothing; "" where it shows a figure."""
    found = re.search(rf'<svg {_REASON}="([^"]*)"', svg)
    return html.unescape(found[1]) if found else ""


def render(figure: Figure) -> str:
    """The figure as a standalone SVG document; groups drawn under `style.tag` carry data attributes and a title."""
    buffer = StringIO()
    with theme():
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return annotate(buffer.getvalue())


def annotate(svg: str) -> str:
    """Turn the ids that `style.tag` made into data attributes and a title, which browsers show on hover.

    Coordinates of paths lose what is below a hundredth of a point: nobody sees it, and it is a third of the file. So
    does what says nothing: turns by 0 degrees, corners of rectangles, and the same style over and over.
    """

    def group(found: re.Match[str]) -> str:
        experiment, section, hover = (html.escape(text) for text in json.loads(unquote(found[1])))
        names = f'data-experiment="{experiment}"' + (f' data-section="{section}"' if section else "")
        return f"<g {names}>" + (f"<title>{hover}</title>" if hover else "")

    coarse = _PATH.sub(lambda path: _shorter(path[0]), _FLAT.sub("", svg))
    return _TAGGED.sub(group, _PATHS.sub(_merged, coarse))


def _shorter(path: str) -> str:
    fine = _FINE.sub(r"\1", path).replace("\n", "")
    return _RECTANGLE.sub(r"M\1 \2H\3V\4H\1Z", fine)


def _merged(paths: re.Match[str]) -> str:
    """The paths of one artist, such as the cells of a row, as one path for each way they are drawn.

    A browser opens a page with thousands of elements fewer noticeably sooner.
    """
    outlines: dict[str, list[str]] = {}
    for outline, drawn in _ONE_PATH.findall(paths[0]):
        outlines.setdefault(drawn, []).append(outline)
    return "".join(f'<path d="{" ".join(parts)}"{drawn}/>' for drawn, parts in outlines.items())


def inline(svg: str, name: str, label: str) -> str:
    """A document of `render` as an element of a page: ids begin with `name`, and a screen reader says the label."""
    element = _REFERENCE.sub(lambda found: f"{found[1]}{name}-", svg[svg.index("<svg") :])
    return element.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1).strip()
