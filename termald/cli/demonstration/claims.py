"""What the demonstration says it has proven, and whether it has."""

import msgspec


class StoryEnded(Exception):  # noqa: N818 - named for what happened
    """The demonstration cannot go on: what comes next would build on what did not happen."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence that must hold, and what was seen that says so (or not)."""

    claim: str
    holds: bool
    evidence: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All that was proven. `failure` is what ended it before its end; `folder` is what was kept."""

    claims: tuple[Claim, ...]
    sessions: int
    seconds: float
    failure: str | None = None
    folder: str | None = None

    @property
    def holds(self) -> bool:
        """Whether everything was shown, and all of it holds."""
        return self.failure is None and bool(self.claims) and all(claim.holds for claim in self.claims)
