"""The command line: `termald serve`, `demo`, `status`, `token`, `config`, `version`.

Lives here: the group that loads a command when it is used (`main`), what all commands share (`invocation`, `rows`,
`exits`), one module for each command, and the demo's own room (`demonstration`). May import: everything of termald,
each command only what it needs; `main` nothing heavy, so that help is instant.
Keeps: results on standard output, everything else on standard error; with `--json` exactly one JSON document, also for
a failure; the exit codes of `exits`.
Begin at `main.py`. Not here: any decision; a command asks the daemon through `termald.client`, or starts it.
"""
