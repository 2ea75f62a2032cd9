"""The gate alone: which `Host` and `Origin` pass on which listener. That the shell asks it is in `test_server_http`."""

import pytest

from termald.api.gate import Gate

PORT = 8787


def judge(gate: Gate, *headers: tuple[str, str], kind: str = "tcp") -> tuple[int, str] | None:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    if kind == "tcp":
        refusal = gate.refusal(pairs, kind="tcp", port=PORT)
    else:
        refusal = gate.refusal(pairs, kind="unix", port=None)
    return None if refusal is None else (refusal.status, refusal.slug)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8787",
        "127.0.0.1:9",
        "127.255.0.3:1",
        "localhost",
        "LocalHost:8787",
        "[::1]:8787",
        "[0:0:0:0:0:0:0:1]:8787",
    ],
)
def test_a_loopback_name_passes_with_any_port(host: str) -> None:
    """A forwarded port (ssh -L) is another one than ours."""
    assert judge(Gate(), ("host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8787",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "128.0.0.1",
        "0.0.0.0",
        "10.0.0.1:8787",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[127.0.0.1]",
        "::1",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "",
        " ",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:99999",
        "user@127.0.0.1",
        "127.0.0.1/",
        "127.0.0.1, evil",
        "é",
    ],
)
def test_any_other_name_is_misdirected(host: str) -> None:
    """A rebound DNS name must not reach the daemon, nor anything that somebody might read as one."""
    assert judge(Gate(), ("host", host)) == (421, "host-refused")


def test_no_name_at_all_is_misdirected() -> None:
    """HTTP/1.0 allows it; nobody who was sent here by a browser does it, but nothing is lost by asking."""
    assert judge(Gate()) == (421, "host-refused")


def test_two_names_are_malformed_wherever_they_come() -> None:
    """One proxy reads the first, another the last."""
    both = (("host", "localhost"), ("host", "evil.example"))
    assert judge(Gate(), *both) == (400, "bad-request")
    assert judge(Gate(), *both, kind="unix") == (400, "bad-request")


def test_a_configured_name_passes_with_any_port_and_case_and_its_neighbours_do_not() -> None:
    """The control: without the setting it does not."""
    gate = Gate(hosts=frozenset({"Box.lan"}))
    assert judge(gate, ("host", "box.LAN:1234")) is None
    assert judge(gate, ("host", "x.box.lan")) == (421, "host-refused")
    assert judge(Gate(), ("host", "box.lan")) == (421, "host-refused")


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost:8787", "[::1]:8787"])
def test_our_own_origin_passes(host: str) -> None:
    """Spelled as the request was addressed."""
    assert judge(Gate(), ("host", host), ("origin", f"http://{host}")) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://evil.example:8787",
        "http://127.0.0.1",
        "http://127.0.0.1:3000",
        "https://127.0.0.1:8787",
        "http://localhost:8787",
        "http://[::1]:8787",
        "http://127.0.0.1:8787.evil.example",
        "http://127.0.0.1:8787@evil.example",
        "http://127.0.0.1:8787/",
        "127.0.0.1:8787",
        "chrome-extension://abcdef",
        "http://127.0.0.1:8787 http://evil.example",
    ],
)
def test_every_other_origin_is_refused(origin: str) -> None:
    """Also another spelling of loopback: what listens on [::1] need not be us, nor our user."""
    assert judge(Gate(), ("host", "127.0.0.1:8787"), ("origin", origin)) == (403, "origin-refused")


def test_two_origins_are_refused_even_if_one_is_ours() -> None:
    """A browser sends one."""
    ours = ("origin", "http://127.0.0.1:8787")
    assert judge(Gate(), ("host", "127.0.0.1:8787"), ours, ours) == (403, "origin-refused")


def test_an_origin_on_a_forwarded_port_must_be_configured() -> None:
    """A page that came through `ssh -L 9000:127.0.0.1:8787` is not provably ours."""
    headers = (("host", "localhost:9000"), ("origin", "http://localhost:9000"))
    assert judge(Gate(), *headers) == (403, "origin-refused")
    assert judge(Gate(origins=frozenset({"http://localhost:9000"})), *headers) is None


def test_a_configured_origin_passes_and_its_neighbours_do_not() -> None:
    """Case does not matter, scheme and port do."""
    gate = Gate(origins=frozenset({"https://Panel.example"}))
    host = ("host", "127.0.0.1:8787")
    assert judge(gate, host, ("origin", "https://panel.example")) is None
    assert judge(gate, host, ("origin", "http://panel.example")) == (403, "origin-refused")
    assert judge(gate, host, ("origin", "https://panel.example:8443")) == (403, "origin-refused")


def test_the_default_port_may_be_left_out_on_either_side() -> None:
    """Browsers leave it out."""
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost:80")]
    assert Gate().refusal(headers, kind="tcp", port=80) is None
    assert Gate().refusal(headers, kind="tcp", port=PORT) is not None


def test_on_the_unix_socket_any_host_passes_and_an_origin_only_if_configured() -> None:
    """No browser gets there by a name, and nothing that has an origin belongs there."""
    assert judge(Gate(), ("host", "whatever"), kind="unix") is None
    assert judge(Gate(), kind="unix") is None
    assert judge(Gate(), ("host", "localhost"), ("origin", "http://localhost"), kind="unix") == (403, "origin-refused")
    gate = Gate(origins=frozenset({"http://localhost"}))
    assert judge(gate, ("host", "localhost"), ("origin", "http://localhost"), kind="unix") is None


@pytest.mark.parametrize("host", ["box.lan:80", "http://box.lan", "box lan", ""])
def test_a_configured_host_must_be_a_name(host: str) -> None:
    """It would silently match nothing."""
    with pytest.raises(ValueError, match="not a host name"):
        Gate(hosts=frozenset({host}))


@pytest.mark.parametrize("origin", ["box.lan", "http://box.lan/", "null", "ftp://box.lan", "*"])
def test_a_configured_origin_must_be_one(origin: str) -> None:
    """`null` is every sandboxed page's origin, and `*` would be all."""
    with pytest.raises(ValueError, match="not an origin"):
        Gate(origins=frozenset({origin}))
