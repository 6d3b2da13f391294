"""The one exception a user is meant to read."""


class TrisectError(Exception):
    """Bad input or a failed run, said in one line.

    The message names what is wrong, where (file, key, rank), and what to do. Entry points print it
    without a traceback and exit with code 2; any other exception is a bug in trisect.
    """
