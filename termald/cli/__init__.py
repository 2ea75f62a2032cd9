"""The command line: `termald serve`, `demo`, `status`, and what asks a running daemon.

Lives here: the group that loads a command when it is used (`main`), what all commands share (`invocation`, `asking`,
`rows`, `exits`), the commands by what they are about (`sessions`, `talk`, `decisions`, `threads`, and one module for
each of the others), a turn on a terminal (`live`, `asked`), and the demo's own room (`demonstration`). May import:
everything of termald, each command only what it needs; `main` nothing heavy, so that help is instant.
Keeps: results on standard output, everything else on standard error; with `--json` exactly one JSON document, also for
a failure (`tail`: one a line); the exit codes of `exits`.
Begin at `main.py`. Not here: any decision; a command asks the daemon through `termald.client`, or starts it.
"""
