"""The bridge between Feishu/Lark and Agno AgentOS: every accepted message gets exactly one answer.

`LarkInterface` mounts it in an AgentOS app, `Bridge` runs it in a program of your own, `load_settings` reads what it
needs to know. Names are imported when they are first used: `agno-lark --help` shall not wait for agno.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agno_lark.app import Bridge
    from agno_lark.errors import AgnoLarkError, SettingsError
    from agno_lark.interface import FeishuInterface, LarkInterface
    from agno_lark.settings import Settings, load_settings
    from agno_lark.targets import build_remote_target

__all__ = [
    "AgnoLarkError",
    "Bridge",
    "FeishuInterface",
    "LarkInterface",
    "Settings",
    "SettingsError",
    "build_remote_target",
    "load_settings",
]

__version__ = "0.1.0"

_HOMES = {
    "AgnoLarkError": "errors",
    "Bridge": "app",
    "FeishuInterface": "interface",
    "LarkInterface": "interface",
    "Settings": "settings",
    "SettingsError": "errors",
    "build_remote_target": "targets",
    "load_settings": "settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
