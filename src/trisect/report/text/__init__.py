"""All wording of notes, findings and predictions."""
