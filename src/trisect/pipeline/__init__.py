"""Files in, files out: one module a rule or command, without arithmetic or wording of its own."""
