"""Reading one handmade trace."""

import pytest

from trisect.trace.read_job import read_job


@pytest.fixture
def read(tmp_path):
    """Write texts as files and read them as one job; a text alone is rank-0.json."""

    def read_texts(*texts, names=None, **options):
        names = names or [f"rank-{rank}.json" for rank in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_bytes(text)
        return read_job([tmp_path / name for name in names], **options)

    return read_texts
