"""The modules behind sweep.py, report.py and paper.py."""
