"""`LarkInterface`: the bridge inside an AgentOS app (`AgentOS(interfaces=[LarkInterface(agent=...)])`)."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from agno.os.interfaces.base import BaseInterface
from fastapi import APIRouter

from agno_lark.app import Bridge
from agno_lark.settings import Settings, load_settings
from agno_lark.targets import FollowLimits, Target
from agno_lark.web import bridge_router

__all__ = ["FeishuInterface", "LarkInterface"]


class LarkInterface(BaseInterface):
    """Mounts the bridge in an AgentOS: it starts and drains with the app.

    `target` is an agno Agent, Team or Workflow of this process, a RemoteAgent, RemoteTeam or RemoteWorkflow, or an
    object with the bridge's own `Target` protocol; without one, `AGENTOS_URL` and `AGENTOS_TARGET_ID` say who answers.
    `settings` defaults to `load_settings()`. Routes are those of the daemon, under `prefix`. Raises `SettingsError`.
    """

    type = "feishu"
    version = "1.0"

    def __init__(
        self,
        target: Any = None,
        *,
        settings: Settings | None = None,
        prefix: str = "",
        tags: list[str] | None = None,
    ) -> None:
        self.settings = settings or load_settings(needs_target=target is None)
        self.prefix = prefix
        self.tags = tags or ["Feishu"]
        self.bridge = Bridge(self.settings, _as_target(target, self.settings), address="an AgentOS app")
        self._lives = False
        # Status and health tell no secrets and run nothing, so they need no token of the AgentOS.
        self.authenticates_own_requests = True

    def get_router(self, use_async: bool = True, **kwargs: Any) -> APIRouter:
        """The routes, with the bridge's life in the router's lifespan. May be asked for again: AgentOS does so when it
        makes its routes anew, and the bridge lives once all the same."""

        @contextlib.asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[None]:
            if self._lives:
                yield
                return
            async with self.bridge.running():
                self._lives = True
                try:
                    yield
                finally:
                    self._lives = False

        self.router = APIRouter(prefix=self.prefix, lifespan=lifespan)
        self.router.include_router(bridge_router(self.bridge))
        return self.router

    def get_scope_mappings(self) -> dict[str, list[str]]:
        """No route runs an agent, so none needs a scope."""
        return {}


FeishuInterface = LarkInterface


def _as_target(target: Any, settings: Settings) -> Target | Callable[[], Target] | None:
    if target is None or isinstance(target, Target):
        return target
    from agno_lark.targets.local import target_for

    token = settings.agentos_token.get_secret_value()
    limits = FollowLimits(run_timeout_s=settings.bridge_run_timeout, lost_s=settings.bridge_lost_run_timeout)
    return lambda: target_for(target, token=token, limits=limits)
