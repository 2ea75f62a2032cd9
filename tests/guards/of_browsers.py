"""The guards of a browser's way in."""

from typing import Final

from guards.guard import Guard

BROWSER: Final = "tests/api/test_browser.py"
FILE: Final = "termald/api/browser.py"

OF_BROWSERS: Final = (
    Guard(
        "a link works once",
        "BROWSER",
        FILE,
        "self._links = [link for link, is_it in zip(links, found, strict=True) if not is_it]",
        "pass",
        f"{BROWSER}::test_the_link_works_once",
    ),
    Guard(
        "a link ends",
        "BROWSER",
        FILE,
        "return [link for link in self._links if link.expires_s > now]",
        "return [link for link in self._links if now]",
        f"{BROWSER}::test_a_link_ends",
    ),
    Guard(
        "links that nobody uses do not pile up",
        "BROWSER",
        FILE,
        "[-LINKS_MAX:]",
        "",
        f"{BROWSER}::test_of_many_links_the_newest_are_kept",
    ),
    Guard(
        "a cookie ends",
        "BROWSER",
        FILE,
        'return int(body.partition(".")[0]) > self._now_s()',
        "return True",
        f"{BROWSER}::test_a_cookie_ends_by_the_clock_and_its_end_cannot_be_moved",
    ),
    Guard(
        "a cookie is signed",
        "BROWSER",
        FILE,
        "if not hmac.compare_digest(signature.encode(), self._signature(body, port).encode()):",
        "if not signature:",
        f"{BROWSER}::test_a_cookie_ends_by_the_clock_and_its_end_cannot_be_moved",
    ),
    Guard(
        "a cookie is of one port",
        "BROWSER",
        FILE,
        'f"{port}.{body}".encode()',
        "body.encode()",
        f"{BROWSER}::test_a_cookie_is_of_one_token_and_one_port_and_holds_over_a_restart",
    ),
    Guard(
        "a cookie makes no links",
        "BROWSER",
        FILE,
        ' or scope["path"] == MAKE_LINK_PATH:',
        ":",
        f"{BROWSER}::test_the_link_is_made_for_whoever_shows_the_token_and_not_for_a_cookie",
    ),
    Guard(
        "what a browser says of where a request comes from is believed",
        "BROWSER",
        FILE,
        'if said.get(b"sec-fetch-site", "none") not in _OUR_OWN:',
        "if not said:",
        f"{BROWSER}::test_a_foreign_origin_reads_nothing",
    ),
    Guard(
        "with the cookie, what changes something names our origin",
        "BROWSER",
        FILE,
        'if said.get(b"origin", "").partition("://")[2] != said.get(b"host"):',
        "if not said:",
        f"{BROWSER}::test_what_changes_something_must_name_our_origin",
    ),
    Guard(
        "a websocket is no plain read",
        "BROWSER",
        FILE,
        'if scope["type"] == "http" and scope["method"] in _SAFE_METHODS:',
        'if scope.get("method", "GET") in _SAFE_METHODS:',
        f"{BROWSER}::test_a_websocket_opens_with_it_for_our_own_page_alone",
    ),
    Guard(
        "a wrong token is not made good by a cookie",
        "BROWSER",
        FILE,
        'any(name == b"authorization" for name, _ in headers) or ',
        "",
        f"{BROWSER}::test_a_wrong_token_is_not_made_good_by_it",
    ),
    Guard(
        "what looks at a link before people do does not use it up",
        "BROWSER",
        "termald/api/auth.py",
        '(LINK_PATH, "GET")})',
        '(LINK_PATH, "GET"), (LINK_PATH, "HEAD")})',
        f"{BROWSER}::test_what_only_looks_at_a_link_does_not_use_it_up",
    ),
)
