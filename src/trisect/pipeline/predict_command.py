"""`trisect predict`: an experiment of config/study.yaml at any count, from a machine's constants."""

from collections.abc import Sequence
from pathlib import Path

from trisect.config.fields import nearest
from trisect.config.loading import load_experiments, load_machine, load_study
from trisect.errors import TrisectError
from trisect.model import answers
from trisect.model.allreduce_cost import links_of
from trisect.model.predict import of_machine, predict, problem
from trisect.report.text.prediction_text import prediction_text


def predict_from_constants(
    config: Path, machine_name: str, experiment: str, gpus: Sequence[int] | None = None, *, sections: bool = False
) -> list[str]:
    """The prediction for one experiment of config/study.yaml on one machine, as lines of text.

    Args:
        config: the config folder.
        machine_name: a file of config/machines/ that has links.
        experiment: an experiment of config/study.yaml.
        gpus: counts; None takes powers of two from the smallest that it fits on to answers.LARGEST.
        sections: show each section too.

    Raises:
        TrisectError: a file is wrong, there is no such machine or experiment, or a count cannot be taken.
    """
    study, machine = load_study(config), load_machine(machine_name, config)
    known = study.experiments
    if experiment not in known:
        raise TrisectError(f"experiment: no {experiment!r} in config/study.yaml{nearest(experiment, known)}")
    links = links_of(machine, machine_name)
    chosen = problem(
        experiment, load_experiments(config)[experiment], known[experiment], study.size, machine.gpu_memory_gb
    )
    counts = answers.counts_asked(chosen, machine, gpus)
    model = of_machine(chosen, machine, links)
    table = predict(model, counts)
    notes = [answers.rates_of_links(machine_name, machine), *answers.limits(model, machine, counts)]
    about = {"size": study.size, "machine": machine_name, "fitted": [], "errors": [], "notes": notes}
    record = answers.prediction_record(model, machine, table, measured=counts[0], **about)
    return prediction_text(record, table, sections=sections)
