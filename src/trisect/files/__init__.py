"""From files to files: reads results, calls the pure functions, writes whole or not at all. No logic of its own."""
