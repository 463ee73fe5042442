"""The lab: grids of Gossamer runs, and what they show. `sweep.py` and `report.py` are its two doors."""
