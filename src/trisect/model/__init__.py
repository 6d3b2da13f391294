"""Prediction: fit measured counts, predict others, validate, simulate, what if."""
