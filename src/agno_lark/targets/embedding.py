"""agno's own remote objects, for people who embed a remote target in an AgentOS of theirs.

They need agno (about 2 s to import), so it is imported inside. The bridge itself speaks through `RemoteTarget`.
"""

from typing import Any

from agno_lark.settings import Settings, load_settings
from agno_lark.targets.protocol import TargetType

__all__ = ["build_remote_target", "remote_component", "token_of"]


def build_remote_target(settings: Settings | None = None, *, timeout_s: float = 60.0) -> Any:
    """agno's RemoteAgent, RemoteTeam or RemoteWorkflow for AGENTOS_URL, AGENTOS_TARGET_TYPE and AGENTOS_TARGET_ID.

    `settings` defaults to `load_settings()`. It presents AGENTOS_TOKEN with every call. Raises `SettingsError`.
    """
    settings = settings or load_settings()
    return remote_component(
        base_url=settings.agentos_url,
        target_type=TargetType(settings.agentos_target_type),
        target_id=settings.agentos_target_id,
        token=settings.agentos_token.get_secret_value(),
        timeout_s=timeout_s,
    )


def remote_component(
    *, base_url: str, target_type: TargetType, target_id: str, token: str = "", timeout_s: float = 60.0
) -> Any:
    """A RemoteAgent, RemoteTeam or RemoteWorkflow of agno's that presents `token` (when not empty) with every call.

    agno takes a token with some calls only, and with none of those that ask for the target's configuration; the token
    of a single call (`auth_token=`) still wins. `timeout_s`: seconds between bytes.
    """
    built = _build(base_url, target_type, target_id, timeout_s)
    if token:
        built.agentos_client = _client_with_token(base_url, token, timeout_s)
    return built


def token_of(component: Any) -> str:
    """The token a remote object was built with here, else ""."""
    token = getattr(getattr(component, "agentos_client", None), "agno_lark_token", "")
    return token if isinstance(token, str) else ""


def _build(base_url: str, target_type: TargetType, target_id: str, timeout_s: float) -> Any:
    match target_type:
        case TargetType.AGENT:
            from agno.agent import RemoteAgent

            return RemoteAgent(base_url=base_url, agent_id=target_id, timeout=timeout_s)
        case TargetType.TEAM:
            from agno.team import RemoteTeam

            return RemoteTeam(base_url=base_url, team_id=target_id, timeout=timeout_s)
        case TargetType.WORKFLOW:
            from agno.workflow import RemoteWorkflow

            return RemoteWorkflow(base_url=base_url, workflow_id=target_id, timeout=timeout_s)


def _client_with_token(base_url: str, token: str, timeout_s: float) -> Any:
    from agno.client.os import AgentOSClient

    def with_token(options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "headers": {"Authorization": f"Bearer {token}", **(options.get("headers") or {})}}

    class ClientWithToken(AgentOSClient):
        """Every request of agno's client goes through one of these three."""

        agno_lark_token = token

        def _request(self, *args: Any, **options: Any) -> Any:
            return super()._request(*args, **with_token(options))

        async def _arequest(self, *args: Any, **options: Any) -> Any:
            return await super()._arequest(*args, **with_token(options))

        def _astream_post_form_data(self, *args: Any, **options: Any) -> Any:
            return super()._astream_post_form_data(*args, **with_token(options))

    return ClientWithToken(base_url=base_url, timeout=timeout_s)
