"""Reconstructions as the page shows them: pictures, PSNR by iteration, and how far all ranks are from one process."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from trisect.report.figures import reconstruction, svg
from trisect.report.figures.style import experiments_of
from trisect.report.material import Material
from trisect.report.text.note_words import in_words
from trisect.results.notes import Note, note
from trisect.results.record import Quality, RunRecord
from trisect.results.tables import RunKey


def of_experiments(records: Iterable[RunRecord]) -> dict[str, dict[int, Quality]]:
    """The PSNR of the runs that have one, by experiment and then by count, smallest first.

    The largest count's reconstruction is the one that is shown.
    """
    found: dict[str, dict[int, Quality]] = {}
    for one in sorted(records, key=lambda one: one.gpus):
        if one.quality is not None:
            found.setdefault(one.experiment, {})[one.gpus] = one.quality
    return found


def reconstruction_view(
    material: Material, pictures: Mapping[RunKey, reconstruction.Pictures]
) -> dict[str, Any] | None:
    """What the template needs: an entry per experiment with a PSNR, and which have none; None where no run has one."""
    found = of_experiments(material.records)
    if not found:
        return None
    ran = {record.experiment for record in material.records}
    named = [name for name in experiments_of(material.scaling) if name in ran]
    without = [name for name in named if name not in found]
    with_psnr = enumerate(name for name in named if name in found)
    shown = [_entry(name, f"reconstruction-{i}", found[name], pictures, material.unit) for i, name in with_psnr]
    return {
        "shown": shown,
        "pictures": any(entry["pictures"] for entry in shown),
        "lines": any(entry["line"] for entry in shown),
        "without": in_words(note("no_denoiser", experiments=without), material.unit) if without else "",
    }


def _entry(
    experiment: str,
    name: str,
    by_count: Mapping[int, Quality],
    pictures: Mapping[RunKey, reconstruction.Pictures],
    unit: str,
) -> dict[str, Any]:
    gpus, quality = max(by_count.items())
    shown = pictures.get((experiment, gpus), {})
    line = reconstruction.has_trajectory(quality)
    what = ["truth, one measurement and result"] * bool(shown) + ["PSNR by iteration"] * line
    label = f"{experiment}: {'; '.join(what)}"
    drawing = reconstruction.draw(quality, shown, experiment, gpus, unit)
    return {
        "experiment": experiment,
        "name": name,
        "label": label,
        "sentence": in_words(quality_note(by_count), unit),
        "drawing": Markup(svg.inline(drawing, name, f"{label}.")) if drawing else "",
        "pictures": bool(shown),
        "line": line,
    }


def quality_note(by_count: Mapping[int, Quality]) -> Note:
    """PSNR at the largest count, the largest difference of any count to one process, and what tiling changes."""
    shown = by_count[max(by_count)]
    differences = [one.largest_difference_db for one in by_count.values()]
    return note(
        "reconstructed",
        size=shown.size,
        first=shown.psnr_db[0],
        last=shown.psnr_db[-1],
        count=len(shown.psnr_db) - 1,
        counts=sorted(by_count),
        worst=None if any(map(math.isnan, differences)) else max(differences),
        tiling=None if math.isnan(shown.tiling_db) else shown.tiling_db,
    )
