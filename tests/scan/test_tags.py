"""A tag finds the thread we minted, whatever the caller named the session, and nothing else looks like one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from state.records import SessionId
from state.tags import Tag, mint_tag, parse_tag

hosts = st.text(min_size=1, max_size=12).filter(lambda text: ":" not in text)
generations = st.integers(0, 10**18 - 1)


@given(host=hosts, session=st.text(), generation=generations)
@example(host="h", session="a:b::7:", generation=0)
@example(host="h", session="", generation=1)
@example(host="h", session='nul\x00, line\n, quote" and 😀', generation=1)
def test_what_was_minted_is_parsed_back(host: str, session: str, generation: int) -> None:
    tag = mint_tag(host, SessionId(session), generation)
    assert parse_tag(tag) == Tag(host_id=host, session_id=SessionId(session), generation=generation)


@given(st.text() | st.from_regex(r"termald:.*", fullmatch=True))
@example("termald:h:s:٣")
@example("termald:h:s:01")
@example("termald:h:s:-1")
@example("termald:h:s:" + "9" * 5000)
@example("termald::s:1")
@example("termald:h:1")
@example("Termald:h:s:1")
@example(" termald:h:s:1")
def test_a_text_is_a_tag_only_if_minting_would_have_made_it(text: str) -> None:
    tag = parse_tag(text)
    if tag is not None:
        assert mint_tag(tag.host_id, tag.session_id, tag.generation) == text


@pytest.mark.parametrize("text", [None, "", "subagent", "user", "termald:h:s", "termald:h:s:", "other:h:s:1"])
def test_what_others_write_is_no_tag(text: str | None) -> None:
    assert parse_tag(text) is None


@pytest.mark.parametrize(("host", "generation"), [("", 1), ("a:b", 1), ("h", -1), ("h", 10**18)])
def test_a_tag_that_could_not_be_parsed_back_is_not_minted(host: str, generation: int) -> None:
    with pytest.raises(ValueError, match="cannot stand in a tag"):
        mint_tag(host, SessionId("s"), generation)
