"""One module a section of the page, from tables to what its template shows."""
