"""The commands of ``convgrad …``, one module a command and one a reason.

* :mod:`convgrad.cli.check` judges somebody's own function, :mod:`convgrad.cli.files` arrays that
  somebody saved, :mod:`convgrad.cli.ledger` prints products, :mod:`convgrad.cli.worksheet` writes
  exercises for paper, :mod:`convgrad.cli.classroom` hands out and grades,
  :mod:`convgrad.cli.bench` times.
* :mod:`convgrad.cli.load` finds the function, :mod:`convgrad.cli.styles` finds out how it wants
  to be called, :mod:`convgrad.cli.trials` what to try it on, :mod:`convgrad.cli.verdict` what its
  answers have in common, :mod:`convgrad.cli.snippet` how to see the same without this command.
"""
