"""python -m gossamer: the program of this package, with tasks."""

from gossamer.program import main

main()
