"""Signatures: own content is known again, anything else is not."""

import stat

import pytest

from contrafact.benchmark import signing


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "contrafact" / "secret"


def test_only_what_was_signed_for_the_name_is_known(state):
    file = signing.signed("key", b"content")
    assert signing.content_of("key", file) == b"content"
    assert signing.content_of("other", file) is None
    assert signing.content_of("key", b"c0ntent" + file[7:]) is None
    assert signing.content_of("key", b"content") is None
    assert signing.content_of("key", b"") is None


def test_the_secret_is_kept_for_its_user_alone(state, tmp_path, monkeypatch):
    file = signing.signed("key", b"content")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert [path.name for path in state.parent.iterdir()] == ["secret"]
    signing._secret.cache_clear()
    assert signing.content_of("key", file) == b"content"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert signing.content_of("key", file) is None


def test_without_a_place_for_the_secret_it_holds_for_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    file = signing.signed("key", b"content")
    assert signing.content_of("key", file) == b"content"
    signing._secret.cache_clear()
    assert signing.content_of("key", file) is None
