"""The order of the sources, what is refused, and that nothing which was given is lost."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.settings import PLACES, flag, resolve_from

from termald.codex.identity import MARK_NAME
from termald.config.resolve import SettingsError, Source, load
from termald.settings import FIELDS, Listen, show, value_of

FILE = Path("/etc/termald/config.toml")


def problems_of(**given_: object) -> tuple[str, ...]:
    """The sentences that `resolve` refuses these sources with."""
    with pytest.raises(SettingsError) as refused:
        resolve_from(**given_)  # type: ignore[arg-type]  # each test passes what `resolve_from` declares
    return refused.value.problems


def test_with_nothing_given_every_value_is_a_default_and_says_so() -> None:
    resolved = resolve_from()
    assert set(resolved.sources) == set(FIELDS)
    assert set(resolved.sources.values()) == {Source("default")}
    assert resolved.settings.server.listen == Listen("127.0.0.1", 8787)
    assert resolved.settings.state.dir == PLACES.state_dir
    assert resolved.settings.server.unix_socket == resolved.settings.runtime.dir / "termald.sock"


def test_the_runtime_folder_lies_in_the_state_folder_where_the_system_has_none() -> None:
    """Two states must never share a `daemon.json` because XDG_RUNTIME_DIR is unset."""
    resolved = resolve_from(environment={"TERMALD_STATE_DIR": "/srv/one"}, runtime_dir=None)
    assert resolved.settings.runtime.dir == Path("/srv/one/run")
    assert resolved.settings.server.unix_socket == Path("/srv/one/run/termald.sock")


SETTERS = ("file", "environment", "flag")


@settings(deadline=None)
@given(
    levels=st.dictionaries(
        st.sampled_from(SETTERS), st.sampled_from(["debug", "info", "warning", "error"]), max_size=len(SETTERS)
    )
)
def test_the_highest_source_wins_and_is_named(levels: dict[str, str]) -> None:
    resolved = resolve_from(
        file=f'[log]\nlevel = "{levels["file"]}"\n' if "file" in levels else None,
        environment={"TERMALD_LOG_LEVEL": levels["environment"]} if "environment" in levels else {},
        flags=[flag("log.level", levels["flag"])] if "flag" in levels else [],
    )
    winner = next((kind for kind in reversed(SETTERS) if kind in levels), None)
    assert resolved.settings.log.level == (levels[winner] if winner else "info")
    assert resolved.sources["log.level"].kind == (winner or "default")


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("TERMALD_LISTEN", "127.0.0.1:0", "server.listen", Listen("127.0.0.1", 0)),
        ("TERMALD_SERVER_LISTEN", "[::1]:99", "server.listen", Listen("::1", 99)),
        ("TERMALD_LISTEN", "off", "server.listen", None),
        ("TERMALD_STATE_DIR", "~/s", "state.dir", PLACES.home / "s"),
        ("TERMALD_RUNTIME_DIR", "r/../q", "runtime.dir", PLACES.working / "q"),
        ("TERMALD_CODEX_BIN", "codex-nightly", "codex.bin", "codex-nightly"),
        ("TERMALD_CODEX_BIN", "./codex", "codex.bin", str(PLACES.working / "codex")),
        ("CODEX_HOME", "/srv/codex", "codex.home", Path("/srv/codex")),
        ("TERMALD_CODEX_TRANSPORT", "stdio", "codex.transport", "stdio"),
        ("TERMALD_CODEX_CALLS_MAX", "17", "codex.calls_max", 17),
        ("TERMALD_DISCOVERY_ENABLED", "false", "discovery.enabled", False),
        ("TERMALD_DISCOVERY_HOMES", "/a, ~/b", "discovery.homes", (Path("/a"), PLACES.home / "b")),
        ("TERMALD_DISCOVERY_HOMES", '["/a,b"]', "discovery.homes", (Path("/a,b"),)),
    ],
)
def test_a_variable_sets_its_value(variable: str, text: str, key: str, value: object) -> None:
    resolved = resolve_from(environment={variable: text})
    assert value_of(resolved.settings, FIELDS[key]) == value
    assert resolved.sources[key] == Source("environment", variable)
    assert resolved.warnings == ()


def test_a_name_of_our_own_ranks_above_codexs() -> None:
    resolved = resolve_from(environment={"TERMALD_CODEX_HOME": "/ours", "CODEX_HOME": "/theirs"})
    assert resolved.settings.codex.home == Path("/ours")
    assert resolved.sources["codex.home"].name == "TERMALD_CODEX_HOME"


def test_an_empty_variable_is_unset_but_an_empty_list_can_be_said() -> None:
    """`VARIABLE= command` takes a variable back; a list of the file needs another word to be emptied."""
    file = '[server]\nhosts = ["box.lan"]\n'
    assert resolve_from(file=file, environment={"TERMALD_SERVER_HOSTS": ""}).settings.server.hosts == ("box.lan",)
    assert resolve_from(file=file, environment={"TERMALD_SERVER_HOSTS": "[]"}).settings.server.hosts == ()


def test_relative_paths_of_the_file_begin_beside_it() -> None:
    resolved = resolve_from(file='[state]\ndir = "data"\n', path=FILE)
    assert resolved.settings.state.dir == FILE.parent / "data"


@pytest.mark.parametrize(
    ("file", "key", "allowed"),
    [
        ("[server]\nlisen = 1\n", "server.lisen = 1", "there is no such setting; did you mean server.listen?"),
        ("[sever]\n", "sever", "there is no such section; did you mean server?"),
        ("log = 3\n", "log = 3", "must be a table, as in [log]"),
        ("[codex]\ncalls_max = 500\n", "codex.calls_max = 500", "must be a whole number from 1 to 128 (requests)"),
        ('[codex]\ncalls_max = "9"\n', "codex.calls_max = '9'", "must be a whole number from 1 to 128 (requests)"),
        ("[codex]\ncalls_max = true\n", "codex.calls_max = True", "must be a whole number from 1 to 128 (requests)"),
        ('[log]\nformat = "xml"\n', "log.format = 'xml'", 'must be "auto" or "console" or "json"'),
        ("[state]\ndir = 5\n", "state.dir = 5", "must be a path"),
        ('[state]\ndir = ""\n', "state.dir = ''", "must be a path"),
        ('[server]\nhosts = "box"\n', "server.hosts = 'box'", "must be a list of texts"),
        ("[server]\nlisten = 80\n", "server.listen = 80", 'must be HOST:PORT, or "off"'),
        ('[codex]\nbin = ""\n', "codex.bin = ''", 'must be a text, or "auto"'),
    ],
)
def test_a_mistake_in_the_file_is_told_with_key_value_source_and_what_is_allowed(
    file: str, key: str, allowed: str
) -> None:
    assert problems_of(file=file, path=FILE) == (f"{key} (file {FILE}): {allowed}",)


def test_text_that_is_not_toml_is_refused_with_its_place() -> None:
    (said,) = problems_of(file="[log\n", path=FILE)
    assert said.startswith(f"{FILE} is not TOML: ")
    assert "line 1" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (":8787", "the host is not optional"),
        ("8787", "must be HOST:PORT"),
        ("::1:8787", "stands in brackets"),
        ("127.0.0.1:65536", "a port from 0 to 65535"),
        ("127.0.0.1:http", "a port from 0 to 65535"),
        ("http://127.0.0.1:80", "in brackets"),
        ("a/b:80", "a plain host name or address"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(text: str, why: str) -> None:
    (said,) = problems_of(environment={"TERMALD_LISTEN": text})
    assert said.startswith(f"server.listen = {text!r} (environment TERMALD_LISTEN): ")
    assert why in said


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "192.168.1.5:80", "box.lan:80"])
def test_an_address_that_others_can_reach_needs_to_be_said_in_so_many_words(text: str) -> None:
    (said,) = problems_of(environment={"TERMALD_LISTEN": text})
    assert "server.allow_non_loopback = true" in said
    opened = resolve_from(environment={"TERMALD_LISTEN": text, "TERMALD_SERVER_ALLOW_NON_LOOPBACK": "true"})
    assert str(opened.settings.server.listen) == text


@pytest.mark.parametrize("text", ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80"])
def test_loopback_needs_no_permission(text: str) -> None:
    assert str(resolve_from(environment={"TERMALD_LISTEN": text}).settings.server.listen) == text


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({"TERMALD_LISTEN": "off", "TERMALD_SERVER_UNIX_SOCKET": "off"}, "server.listen"),
        ({"TERMALD_CODEX_ON_SHUTDOWN": "leave", "TERMALD_CODEX_TRANSPORT": "stdio"}, "codex.on_shutdown"),
        ({"TERMALD_CODEX_BACKOFF_FIRST_MS": "900", "TERMALD_CODEX_BACKOFF_MAX_MS": "800"}, "codex.backoff_first_ms"),
        ({"TERMALD_SERVER_HOSTS": "http://box"}, "server.hosts"),
        ({"TERMALD_SERVER_ORIGINS": "https://box/path"}, "server.origins"),
        ({"TERMALD_SERVER_ORIGINS": "*"}, "server.origins"),
    ],
)
def test_values_that_contradict_each_other_are_refused(environment: dict[str, str], key: str) -> None:
    (said,) = problems_of(environment=environment)
    assert said.startswith(f"{key} = ")


def test_a_wrong_value_is_told_even_where_a_higher_source_overrides_it() -> None:
    """The line is wrong today and would bite on the day when the flag is left out."""
    (said,) = problems_of(file='[log]\nlevel = "loud"\n', path=FILE, flags=[flag("log.level", "info")])
    assert said.startswith(f"log.level = 'loud' (file {FILE})")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    said = problems_of(
        file="[log]\nlevel = 1\nformt = 2\n",
        environment={"TERMALD_CODEX_CALLS_MAX": "0"},
        flags=[flag("codex.nothing", "x")],
    )
    assert [line.partition(" ")[0] for line in said] == [
        "log.formt", "codex.nothing", "log.level", "codex.calls_max",
    ]  # fmt: skip


def test_a_misspelt_variable_of_a_section_is_refused_and_a_stranger_only_noticed() -> None:
    (said,) = problems_of(environment={"TERMALD_CODEX_BINN": "x"})
    assert said.endswith("there is no such setting; did you mean TERMALD_CODEX_BIN?")
    resolved = resolve_from(environment={"TERMALD_OF_SOMEBODY": "x", "HOME": "/home/u"})
    (noticed,) = resolved.warnings
    assert noticed.startswith("TERMALD_OF_SOMEBODY = 'x'")


def test_the_mark_of_codexs_children_is_no_setting() -> None:
    """`termald status` must work in a command that Codex runs."""
    assert resolve_from(environment={MARK_NAME: "r-1", "TERMALD_CONFIG": "/x"}).warnings == ()


def test_a_long_value_does_not_drown_the_message() -> None:
    (said,) = problems_of(environment={"TERMALD_LOG_LEVEL": "x" * 100_000})
    assert len(said) < 500


def test_what_show_writes_is_a_file_that_gives_the_same_settings() -> None:
    """`termald config show > config.toml` must pin what runs now."""
    first = resolve_from(
        environment={
            "TERMALD_LISTEN": "off",
            "TERMALD_SERVER_HOSTS": '["box.lan"]',
            "TERMALD_STATE_DIR": '/odd "dir"\\\x7f\x01é',
            "TERMALD_DISCOVERY_HOMES": "/a,/b",
        }
    ).settings
    lines = (f"{field.key} = {show(value_of(first, field), field.none)}" for field in FIELDS.values())
    assert resolve_from(file="\n".join(lines)).settings == first


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=40), key=st.sampled_from(sorted(FIELDS)))
def test_any_text_is_either_taken_or_refused_with_its_source(text: str, key: str) -> None:
    """A value never vanishes: it is in force under its source, or the refusal names it."""
    try:
        resolved = resolve_from(flags=[flag(key, text)])
    except SettingsError as error:
        assert all(f"(flag --{key})" in said for said in error.problems)
    else:
        assert resolved.sources[key] == Source("flag", f"--{key}")
        show(value_of(resolved.settings, FIELDS[key]), FIELDS[key].none).encode()


class TestLoad:
    """Reading the file of the real machine."""

    def test_a_file_that_a_flag_names_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"there is no file .*missing\.toml \(flag --config\)"):
            load(config_file=tmp_path / "missing.toml", environment={})

    def test_a_file_that_a_variable_names_may_be_missing_but_is_noticed(self, tmp_path: Path) -> None:
        resolved = load(environment={"TERMALD_CONFIG": str(tmp_path / "missing.toml")})
        (noticed,) = resolved.warnings
        assert "missing.toml" in noticed

    def test_the_file_is_read_and_named_as_the_source(self, tmp_path: Path) -> None:
        file = tmp_path / "config.toml"
        file.write_text('[state]\ndir = "data"\n')
        resolved = load(environment={"TERMALD_CONFIG": str(file)})
        assert resolved.settings.state.dir == tmp_path / "data"
        assert resolved.sources["state.dir"] == Source("file", str(file))

    def test_a_file_that_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "config.toml"
        file.write_bytes(b"\xff")
        with pytest.raises(SettingsError, match="cannot read the settings in"):
            load(environment={"TERMALD_CONFIG": str(file)})

    def test_the_runtime_folder_is_the_users_own(self, tmp_path: Path) -> None:
        resolved = load(environment={"XDG_RUNTIME_DIR": str(tmp_path), "TERMALD_CONFIG": str(tmp_path / "none")})
        assert resolved.settings.runtime.dir == tmp_path / "termald"
