"""Numbers to words, figures and one page; the only importer of matplotlib and jinja2."""
