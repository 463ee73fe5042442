"""The error that a user can cause."""


class LabError(Exception):
    """The command line, a file or the grid is wrong. The message names the fault.

    The program ends with status 2.
    """
