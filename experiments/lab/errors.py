"""What a user can cause, said in words."""


class LabError(Exception):
    """Something in the command, a file or the grid is wrong; the message names it. Ends the program with status 2."""
