"""What `termald doctor` looks at: each check a function from the settings to findings.

Lives here: what a finding is (`findings`), Codex and its home (`codex`), our own folders, sockets and database
(`state`), the machine (`machine`). May import: everything of termald.
Keeps: a check changes nothing; what it cannot find out it says; what `--fix` may do is a function in its finding, and
is safe whatever runs: it never ends a process, and never touches a database or anything of Codex's.
Begin at `findings.py`. Not here: printing (`termald.cli.doctor`).
"""
