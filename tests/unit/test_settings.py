"""Settings: read from the environment, .env and secret files; every mistake told at once."""

from pathlib import Path

import pytest

from agno_lark.cli.serve import serve
from agno_lark.errors import SettingsError
from agno_lark.settings import SECRETS, GroupSessionMode, Settings, TargetKind, load_settings, misspelt

GOOD = {
    "FEISHU_APP_ID": "cli_a",
    "FEISHU_APP_SECRET": "s3cret",
    "AGENTOS_URL": "http://127.0.0.1:7777/",
    "AGENTOS_TARGET_ID": "helper",
}


def load(**environ: str) -> Settings:
    return load_settings(env_file=None, environ=GOOD | environ)


def problems(**environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**environ)
    return str(caught.value)


def test_the_required_settings_are_enough_and_the_rest_has_the_documented_defaults() -> None:
    settings = load()
    assert settings.agentos_url == "http://127.0.0.1:7777"
    assert settings.agentos_target_type is TargetKind.AGENT
    assert settings.feishu_state_db == Path(".data/agno-feishu.sqlite3")
    assert settings.feishu_group_session_mode is GroupSessionMode.USER
    assert settings.lark_api_base_url == "https://open.feishu.cn"
    assert (settings.lark_api_timeout, settings.lark_data_max_rows, settings.lark_data_max_cells) == (20, 100, 2000)
    assert (settings.lark_base_page_size, settings.bridge_host, settings.bridge_port) == (50, "127.0.0.1", 7788)
    assert settings.open_to_everyone


def test_the_old_name_of_the_target_id_still_works_for_an_agent() -> None:
    old = {name: value for name, value in GOOD.items() if name != "AGENTOS_TARGET_ID"}
    settings = load_settings(env_file=None, environ=old | {"AGENTOS_AGENT_ID": "old"})
    assert settings.agentos_target_id == "old"
    assert load(AGENTOS_AGENT_ID="old").agentos_target_id == "helper", "the new name wins"


def test_the_old_name_is_no_teams_id() -> None:
    old = {name: value for name, value in GOOD.items() if name != "AGENTOS_TARGET_ID"}
    with pytest.raises(SettingsError, match="AGENTOS_TARGET_ID"):
        load_settings(env_file=None, environ=old | {"AGENTOS_AGENT_ID": "old", "AGENTOS_TARGET_TYPE": "team"})


def test_all_wrong_settings_are_told_together_each_with_its_name_and_what_to_do() -> None:
    told = problems(
        BRIDGE_PORT="seven",
        AGENTOS_URL="localhost:7777",
        AGENTOS_TARGET_TYPE="robot",
        LARK_API_BASE_URL="http://open.feishu.cn",
        FEISHU_ALLOWED_USER_IDS="ou_a, on_b",
        LARK_API_TIMEOUT="0",
    )
    assert told.startswith("6 settings are wrong:")
    for name in ("BRIDGE_PORT", "AGENTOS_URL", "AGENTOS_TARGET_TYPE", "LARK_API_BASE_URL", "LARK_API_TIMEOUT"):
        assert f"{name}: expected " in told
    assert "'seven'" in told
    assert "'on_b' does not start with ou_" in told


def test_missing_settings_say_where_to_find_them() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(env_file=None, environ={})
    told = str(caught.value)
    for name in GOOD:
        assert f"{name}: missing; expected " in told
    assert caught.value.exit_code == 2


def test_a_secret_never_appears_in_what_is_told() -> None:
    told = problems(FEISHU_APP_SECRET="", BRIDGE_PORT="99999999", AGENTOS_TOKEN="tok-123")
    assert "tok-123" not in told
    assert "tok-123" not in repr(load(AGENTOS_TOKEN="tok-123"))


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from-file\n", "utf-8")
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_SECRET"}
    settings = load_settings(
        env_file=None, environ=given | {"FEISHU_APP_SECRET_FILE": str(file), "AGENTOS_TOKEN_FILE": str(file)}
    )
    assert settings.feishu_app_secret.get_secret_value() == "from-file"
    assert settings.agentos_token.get_secret_value() == "from-file"
    assert load(FEISHU_APP_SECRET_FILE=str(file)).feishu_app_secret.get_secret_value() == "s3cret"


def test_a_secret_file_that_cannot_be_read_is_the_only_line_about_that_secret(tmp_path: Path) -> None:
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_SECRET"}
    with pytest.raises(SettingsError) as caught:
        load_settings(env_file=None, environ=given | {"FEISHU_APP_SECRET_FILE": str(tmp_path / "none")})
    (problem,) = caught.value.problems
    assert problem.startswith("FEISHU_APP_SECRET_FILE: expected the path of a readable file")
    assert problem.endswith("No such file or directory")


def test_the_environment_wins_over_the_env_file_and_an_empty_variable_does_not(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("\n".join(f"{name}={value}" for name, value in GOOD.items()) + "\nBRIDGE_PORT=1\n", "utf-8")
    assert load_settings(env_file=file, environ={"BRIDGE_PORT": "2"}).bridge_port == 2
    assert load_settings(env_file=file, environ={"BRIDGE_PORT": ""}).bridge_port == 1


def test_an_env_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(SettingsError, match="UTF-8"):
        load_settings(env_file=file, environ={})


def test_lists_take_spaces_and_chinese_commas() -> None:
    assert load(FEISHU_ALLOWED_CHAT_IDS=" oc_a ，oc_b,").feishu_allowed_chat_ids == {"oc_a", "oc_b"}


def test_plain_http_is_for_a_sandbox_on_this_machine() -> None:
    assert load(LARK_API_BASE_URL="http://127.0.0.1:7799/").lark_api_base_url == "http://127.0.0.1:7799"
    assert load(LARK_API_BASE_URL="http://[::1]:7799").lark_api_base_url == "http://[::1]:7799"
    assert "this machine only" in problems(LARK_API_BASE_URL="http://192.168.1.5:80")


def test_an_app_with_its_own_target_needs_no_agentos() -> None:
    settings = load_settings(
        env_file=None, environ={"FEISHU_APP_ID": "cli_a", "FEISHU_APP_SECRET": "s"}, needs_target=False
    )
    assert settings.agentos_url == ""


def test_given_settings_read_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_PORT", "1")
    assert Settings.given(feishu_app_id="a", feishu_app_secret="b").bridge_port == 7788


def test_the_secrets_are_known_as_such() -> None:
    assert set(SECRETS) == {"feishu_app_secret", "agentos_token"}


def test_the_environments_secret_file_wins_over_the_env_files_secret(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / ".env"
    secret.write_text("from-file", "utf-8")
    file.write_text("FEISHU_APP_SECRET=old", "utf-8")
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_SECRET"}
    settings = load_settings(env_file=file, environ=given | {"FEISHU_APP_SECRET_FILE": str(secret)})
    assert settings.feishu_app_secret.get_secret_value() == "from-file"


def test_an_empty_secret_file_is_told_as_empty(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("\n", "utf-8")
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_SECRET"}
    with pytest.raises(SettingsError, match=r"FEISHU_APP_SECRET_FILE: .*it is empty"):
        load_settings(env_file=None, environ=given | {"FEISHU_APP_SECRET_FILE": str(secret)})


def test_a_misspelt_name_is_pointed_at() -> None:
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_ID"}
    with pytest.raises(SettingsError, match=r"FEISHU_APPID \(is FEISHU_APP_ID meant\?\)"):
        load_settings(env_file=None, environ=given | {"FEISHU_APPID": "cli_a"})
    assert misspelt({"FEISHU_ALLOWED_USER_ID": "ou_a"}, {"FEISHU_WEBHOOK": "x", "PATH": "y"}) == [
        "FEISHU_ALLOWED_USER_ID (is FEISHU_ALLOWED_USER_IDS meant?)"
    ]


def test_a_missing_env_file_is_named_when_something_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"There is no file .*nowhere"):
        load_settings(env_file=tmp_path / "nowhere", environ={})
    assert load_settings(env_file=tmp_path / "nowhere", environ=GOOD).feishu_app_id == "cli_a"


def test_the_readmes_placeholder_is_no_app_id() -> None:
    assert "that is a placeholder" in problems(FEISHU_APP_ID="cli_...")


def test_a_named_env_file_that_is_not_there_is_told() -> None:
    with pytest.raises(SettingsError, match=r"there is no file nowhere\.env"):
        serve(host=None, port=None, env_file="nowhere.env")
