"""The token's file: there is no state of it in which authentication is off."""

import stat
from pathlib import Path

import pytest

from termald.api.token import TokenRefused, read_or_make_token


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_token_is_made_once_and_kept(tmp_path: Path) -> None:
    token = read_or_make_token(tmp_path)
    assert len(token) == 43  # 256 bits in base64url
    assert read_or_make_token(tmp_path) == token
    assert mode(tmp_path / "token") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_two_tokens_are_never_the_same(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        folder.mkdir()
    assert len({read_or_make_token(folder) for folder in folders}) == 8


@pytest.mark.parametrize("text", ["", "\n", "   \n"])
def test_an_empty_file_gets_a_token(tmp_path: Path, text: str) -> None:
    """A crash while it was written, or a disk that was full."""
    (tmp_path / "token").write_text(text)
    token = read_or_make_token(tmp_path)
    assert len(token) == 43
    assert (tmp_path / "token").read_text() == token + "\n"
    assert mode(tmp_path / "token") == 0o600


@pytest.mark.parametrize("text", ["short", "a" * 31, "with spaces " * 4, "ü" * 40, "a" * 600])
def test_what_is_no_token_is_refused_and_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(TokenRefused, match="remove it"):
        read_or_make_token(tmp_path)
    assert (tmp_path / "token").read_text() == text


def test_a_token_of_the_users_own_is_taken(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("my-own-token-of-more-than-32-characters\n")
    assert read_or_make_token(tmp_path) == "my-own-token-of-more-than-32-characters"


@pytest.mark.parametrize("loose", [0o644, 0o640, 0o666, 0o604])
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path, loose: int) -> None:
    token = read_or_make_token(tmp_path)
    (tmp_path / "token").chmod(loose)
    assert read_or_make_token(tmp_path) == token
    assert mode(tmp_path / "token") == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write the folder could otherwise choose which file is the token."""
    (tmp_path / "elsewhere").write_text("x" * 43)
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TokenRefused, match="symbolic link"):
        read_or_make_token(tmp_path)


def test_a_folder_or_a_pipe_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(TokenRefused, match="not a file"):
        read_or_make_token(tmp_path)


def test_a_folder_that_is_missing_is_an_error_and_no_token(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        read_or_make_token(tmp_path / "missing")
