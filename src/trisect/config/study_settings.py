"""config/study.yaml, key by key."""

from pydantic import Field

from trisect.config.fields import Closed, Count, Natural


class Work(Closed):
    """What the model knows of one section of one iteration. Seconds are for one GPU."""

    tiles_s: float = Field(default=0, ge=0)
    """All tiles, one after the other."""
    operators_s: float = Field(default=0, ge=0)
    """All operators, one after the other."""
    repeated_s: float = Field(default=0, ge=0)
    """What every rank does, whatever it holds."""
    image_all_reduces: Natural = 1
    """all_reduces of the whole image."""
    other_all_reduces: Natural = 0
    """All other all_reduces, of parameter gradients and scalars."""
    other_bytes: Natural = 0
    """Payload of those others together."""


class StudyExperiment(Closed):
    """What the model knows of one experiment besides its own file."""

    sections: dict[str, Work]
    """By section name, in the order of an iteration."""


class Study(Closed):
    """config/study.yaml: the constants of the model, and what `make study` makes of them."""

    machine: str
    """A file of config/machines/ that has `links`."""
    size: str
    """A key of `sizes` in each experiment's file."""
    gpus: list[Count] = Field(min_length=1)
    """World sizes to simulate."""
    iterations: Count = 10
    """Iterations of each simulated run."""
    seed: int = 0
    """Of the jitter."""
    experiments: dict[str, StudyExperiment]
    """By name, as in config/experiments/."""
