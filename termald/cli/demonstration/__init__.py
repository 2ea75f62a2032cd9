"""`termald demo`: the main job, done for real and checked, in a house of its own.

Lives here: the private folders and the daemon in them (`house`), what is counted outside the daemon (`evidence`), what
is seen of the events (`watch`), the steps and what each proves (`story`), and how it is shown (`view`). May import: the
client, the scripted model, trio, rich; nothing of the daemon, which runs as a process of its own and is spoken to over
HTTP alone.
Keeps: nothing of the user's is read or touched; every claim is checked against something else than the daemon's own
word where there is something else; whatever happens, no process and (unless kept) no folder stays behind.
Begin at `story.py`. Not here: the options and the exit code (`termald/cli/demo.py`).
"""
