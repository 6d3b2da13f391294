"""Pure functions from tables to numbers: decomposition, efficiencies, intervals, findings."""
