"""Findings as the page shows them: a row of the first table, and an article with the picture and the caveats."""

from typing import Any
from urllib.parse import quote

from trisect import wording
from trisect.analysis import findings
from trisect.report.material import Material
from trisect.report.sections import runs
from trisect.report.text.note_words import all_in_words, in_words
from trisect.results.notes import Note, note
from trisect.results.tables import TOTAL


def findings_view(material: Material) -> list[dict[str, Any]]:
    """What the templates need: an entry per experiment, in the table's order."""
    unit = material.unit
    total = material.scaling[material.scaling["section"] == TOTAL].sort_values("gpus")
    found = []
    for one in findings.find(material.scaling, material.notes):
        of_runs = runs.differences(record for record in material.records if record.experiment == one.experiment)
        caveats = all_in_words([*one.caveats, *of_runs], unit)
        cheaper = one.reason is not None and one.reason.kind == "cheaper_than_baseline"
        remedy = None if cheaper else one.remedy  # where nothing is lost nothing has to be done
        found.append(
            {
                "experiment": one.experiment,
                "anchor": f"finding-{quote(one.experiment, safe='')}",
                "verdict": in_words(one.verdict, unit),
                "reason": _said(one.reason, unit),
                "remedy": _said(remedy, unit),
                "next_loss": _said(one.next_loss, unit),
                "caveats": caveats,
                "picture": total[total["experiment"] == one.experiment].to_dict("records"),
                "answer": _answer(one, remedy, len(caveats), unit),
            }
        )
    return found


def _said(one: Note | None, unit: str, form: str = "long") -> str:
    return in_words(one, unit, form) if one else ""


def _answer(one: findings.Finding, remedy: Note | None, caveats: int, unit: str) -> dict[str, str] | None:
    """The cells of the first table; None where nothing can be compared."""
    if one.largest is None:
        return None
    last, first = int(one.largest["gpus"]), int(one.largest["baseline_gpus"])
    reached = {
        name: in_words(note("pays_up_to_count", reached=count, last=last, first=first))
        for name, count in (("pays", one.pays), ("half", one.half))
    }
    ideal = last / first
    return {
        **reached,
        "largest": str(last),
        "efficiency": wording.percent(one.largest["parallel_efficiency"]),
        "speedup": in_words(note("speedup_of_ideal", speedup=float(one.largest["speedup"]), ideal=ideal)),
        "costly": wording.times(one.largest["cost"]) if one.verdict.kind == "busy_but_costly" else "",
        "reason": _said(one.reason, unit, "short"),
        "remedy": _said(remedy, unit, "short"),
        "sure": in_words(note("how_sure", caveats=caveats)),
    }
