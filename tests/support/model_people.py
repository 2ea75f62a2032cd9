"""What callers ask of the daemon, in any state."""

from functools import partial
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.model_base import Base, Option, pick, which

from state.records import IgnoredThread, PromptRecord, RequestRecord, SessionId
from termald.core import inputs as ins

SESSIONS_MAX: Final = 4
PROMPTS_MAX: Final = 14
KINDS_OF_THREAD: Final = ["fresh", "fresh", "fresh", "named"]


class People(Base):
    """Commands."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts = 0
        self.sessions = 0
        self.keyed: list[ins.SubmitPrompt | ins.CreateSession] = []

    @precondition(lambda self: self.sessions < SESSIONS_MAX and self.prompts < PROMPTS_MAX)
    @rule(
        thread=st.none() | which,
        prompted=st.booleans(),
        lost=st.sampled_from(["fail", "fresh"]),
        recovery=st.sampled_from(["resend", "hold"]),
        keyed=st.booleans(),
    )
    def create(
        self,
        *,
        thread: int | None = None,
        prompted: bool = True,
        lost: Any = "fail",
        recovery: Any = "resend",
        keyed: bool = False,
    ) -> None:
        self.sessions += 1
        claimed = pick(self.threads, thread).id if thread is not None and self.threads else None
        if claimed is not None and claimed in self.daemon.state.disposals:
            # A claim ends what was still being done for nobody, an interrupt included; one who lets the thread go
            # again without having attached knows nothing of the turn.
            self.codex.not_interrupted.add(claimed)
        self.ask(
            ins.CreateSession(
                ticket=self.daemon.ticket(),
                at_ms=0,
                session=SessionId(f"s{self.sessions}"),
                settings=ins.SessionSettings(cwd="/work", on_resume_lost=lost, on_recovery=recovery),
                thread=claimed,
                prompt=self.new_prompt() if prompted else None,
                idempotency=self.key() if keyed else None,
            )
        )

    @precondition(lambda self: self.known and self.prompts < PROMPTS_MAX)
    @rule(session=which, mode=st.sampled_from(["queue", "queue", "reject", "steer", "replace"]), keyed=st.booleans())
    def prompt(self, session: int = 0, mode: Any = "queue", *, keyed: bool = False) -> None:
        self.ask(
            ins.SubmitPrompt(
                ticket=self.daemon.ticket(),
                at_ms=0,
                session=pick(self.known, session),
                prompt=self.new_prompt(mode),
                idempotency=self.key() if keyed else None,
            )
        )

    @precondition(lambda self: self.known)
    @rule(session=which, how=st.sampled_from(["interrupt", "stop", "close"]))
    def end(self, session: int = 0, how: str = "interrupt") -> None:
        kinds: dict[str, Any] = {"interrupt": ins.InterruptSession, "stop": ins.StopSession, "close": ins.CloseSession}
        self.command(kinds[how], session=pick(self.known, session))

    @precondition(lambda self: self.known)
    @rule(session=which, wanted=st.sampled_from(["ignore", "archive", "delete"]), dry_run=st.booleans())
    def kill(self, session: int = 0, wanted: Any = "ignore", *, dry_run: bool = False) -> None:
        self.command(ins.KillSession, session=pick(self.known, session), wanted=wanted, dry_run=dry_run)

    @precondition(lambda self: self.known)
    @rule(session=which, fresh=st.booleans())
    def retry(self, session: int = 0, *, fresh: bool = False) -> None:
        self.command(ins.RetrySession, session=pick(self.known, session), fresh=fresh)

    @precondition(lambda self: self.known)
    @rule(session=which, what=st.sampled_from(["compact", "review", "archive", "unarchive", "fork", "revert"]))
    def manage(self, session: int = 0, what: Any = "compact") -> None:
        found = pick(self.known, session)
        if what == "revert":
            self.command(ins.RevertSession, session=found, turns=1)
        elif what != "fork":
            self.command(ins.OperateSession, session=found, kind=what)
        elif self.sessions < SESSIONS_MAX:
            self.sessions += 1
            self.command(ins.ForkSession, session=found, new_session=SessionId(f"s{self.sessions}"))

    @precondition(lambda self: self.daemon.store.requests)
    @rule(request=which, decision=st.sampled_from(['"accept"', '"decline"', '"never offered"']))
    def answer(self, request: int = 0, decision: str = '"accept"') -> None:
        found: RequestRecord = pick(list(self.daemon.store.requests.values())[::-1], request)
        self.command(ins.AnswerRequest, session=found.session_id, request=found.id, decision_json=decision)

    @rule(which=which)
    def somebody_asks_for_something_small(self, which: int) -> None:
        options: list[tuple[str, Option]] = [
            ("a read of Codex's", partial(self.command, ins.AskCodex, method="model/list", params_json="{}"))
        ]
        for prompt in self.newest_prompts():
            taken = partial(self.command, ins.TakeBackPrompt, session=prompt.session_id, prompt=prompt.id)
            options.append((f"{prompt.id} is to be taken back", taken))
        options += [(f"the same again: {one.idempotency}", partial(self.again, one)) for one in self.keyed[-2:]]
        for thread in self.threads:
            entry = IgnoredThread(thread_id=thread.id, reason="noise", at_ms=1)
            options.append((f"{thread.id} is to be ignored", partial(self.command, ins.IgnoreThread, entry=entry)))
        for ignored in self.daemon.store.ignored:
            unignored = partial(self.command, ins.UnignoreThread, thread=ignored)
            options.append((f"{ignored} is to be ignored no more", unignored))
        for session in self.known:
            changes: dict[str, str | None] = {"model": f"m{self.daemon.now}"}
            patched = partial(self.command, ins.PatchSession, session=session, changes=changes)
            options.append((f"another model for {session}", patched))
        self.choose(options, which)

    # --- how it is put ---

    def command(self, kind: Any, /, **fields: Any) -> None:
        """Put a command under a new ticket."""
        self.daemon.put(kind(ticket=self.daemon.ticket(), at_ms=0, **fields))

    def ask(self, command: ins.SubmitPrompt | ins.CreateSession) -> None:
        """Put a command that may have a key."""
        if command.idempotency is not None:
            self.keyed.append(command)
        self.daemon.put(command)

    def again(self, command: ins.SubmitPrompt | ins.CreateSession) -> None:
        """Ask the same again, as a client does that has not heard the answer."""
        fields = {name: getattr(command, name) for name in command.__struct_fields__}
        self.daemon.put(type(command)(**{**fields, "ticket": self.daemon.ticket()}))

    def key(self) -> ins.Idempotency:
        """Return a new key."""
        return ins.Idempotency(key=f"k{len(self.keyed)}", fingerprint="f")

    def new_prompt(self, mode: Any = "queue") -> ins.NewPrompt:
        """Return the next prompt."""
        self.prompts += 1
        return self.daemon.new_prompt(f"p{self.prompts}", mode)

    def newest_prompts(self) -> list[PromptRecord]:
        """Return the last few prompts."""
        return list(self.daemon.store.prompts.values())[-3:]
