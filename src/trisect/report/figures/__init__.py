"""One function a figure, from a table to a matplotlib figure, and what figures share."""
