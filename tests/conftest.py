"""For every test: signals as at a terminal, whatever pytest was started from."""

import signal

# Under nohup, or in the background of a script, these are ignored; the processes that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
