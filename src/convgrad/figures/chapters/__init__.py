"""The pictures of the chapters: a module a chapter, a function a picture.

Every number in them comes from the running examples.  They are rows of grids
(:mod:`convgrad.figures.grids`); what several chapters need stands in :mod:`.shared`.
"""
