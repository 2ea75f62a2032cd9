"""The client library: what a program needs to speak to a running termald, and nothing of the daemon itself.

Lives here: where the daemon is (`locate`), asking it and listening to it (`http`), events from bytes (`sse`, pure), its
answers as values (`models`), and what can go wrong (`errors`). May import: httpx, msgspec, the standard library;
nothing else of termald, so that it can be used, and one day shipped, alone.
Keeps: a daemon that is not running is one error of its own; every other refusal carries the daemon's slug and words.
Begin at `http.py`. Not here: starting a daemon, settings, printing (`termald.cli`).
"""
