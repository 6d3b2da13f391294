"""A slice of the fuzz run, whose whole is `make fuzz`."""

from fuzz.fuzz_reader import MUTATIONS, run


def test_damaged_variants_end_well():
    outcomes, failures = run(300, seed=0)
    assert failures == []
    assert outcomes.total() == 300
    assert {name for name, _ in outcomes} == {mutation.__name__ for mutation in MUTATIONS}
    # A run in which nothing is refused, or nothing said, has not damaged anything.
    assert {"right", "said", "refused"} <= {ended for _, ended in outcomes}
