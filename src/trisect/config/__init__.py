"""Configuration files to frozen, checked objects: a new key, experiment field or machine property goes here."""
