"""A Responses endpoint that answers as the prompt tells it to: the model behind the demo and the tests.

What lives here: a small directive language (`script`, into the values of `plan`), the reading of a Responses request
(`request`, `tools`), the writing of its event stream (`events`, `stream`), the model with its record and its holds
(`model`), and the endpoint (`app`, `server`, `config`).
May import: msgspec, trio and the shell of `termald.api`, nothing else of termald: it stands in for a stranger's service
and knows no more than one. `plan`, `script`, `request`, `tools`, `events` and `stream` are pure.
Keeps: the same prompt gives the same answer but for ids; every call is recorded before it is answered; a script that
cannot be carried out is refused with a 400 that says why, never guessed at.
Begin at `script`. Not here: any judgement about what Codex does with an answer; that is `tests/scripted_model`.
"""
