"""What users would compare, measured beside the alternatives: `python -m bench`, one row a function.

Only ratios within one run mean something. Sides are measured in turn within a round, and each figure is the median of
the rounds with its spread. The scripted model runs in a process of its own and is the same for all sides.
"""
