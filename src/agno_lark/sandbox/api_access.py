"""How an app gets in: discovery of the long connection, tenant tokens, the bot's own data."""

import hmac

from agno_lark.sandbox.calls import Answer, Call, Routes
from agno_lark.sandbox.local_feishu import LocalFeishu

__all__ = ["register"]

SERVICE_ID = 33554678


def register(routes: Routes) -> None:
    """feishu.md sections 1 and 4."""
    routes.add("POST", "/callback/ws/endpoint", "discovery", public=True)(_discover)
    routes.add("POST", "/open-apis/auth/v3/tenant_access_token/internal", "token", public=True)(_token)
    routes.add("GET", "/open-apis/bot/v3/info", "bot.info")(_bot)


def _same(given: object, wanted: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(), wanted.encode())


def _discover(feishu: LocalFeishu, call: Call) -> Answer:
    """514 for wrong credentials, else the WebSocket's address and the ClientConfig."""
    app = feishu.world.app
    if not (_same(call.body.get("AppID"), app.app_id) and _same(call.body.get("AppSecret"), app.app_secret)):
        return Answer(body={"code": 514, "msg": "app_id or app_secret is invalid", "data": None})
    ticket = feishu.world.new_id("")
    feishu.tickets.add(ticket)
    url = f"ws://{call.base_url}/sandbox/ws?device_id={ticket}&service_id={SERVICE_ID}"
    data = {"URL": url, "ClientConfig": feishu.client_config.as_json()}
    return Answer(body={"code": 0, "msg": "", "data": data})


def _token(feishu: LocalFeishu, call: Call) -> Answer:
    """No data wrapper; failures are HTTP 200 (payloads/responses/token_tenant_internal.json)."""
    app = feishu.world.app
    if not isinstance(call.body.get("app_id"), str) or not isinstance(call.body.get("app_secret"), str):
        return Answer(body={"code": 10003, "msg": "invalid param"})
    if not _same(call.body["app_id"], app.app_id):
        return Answer(body={"code": 10014, "msg": "app unauthorized"})
    if not _same(call.body["app_secret"], app.app_secret):
        return Answer(body={"code": 10015, "msg": "wrong app secret"})
    token, expire_s = feishu.tokens.issue()
    return Answer(body={"code": 0, "msg": "ok", "tenant_access_token": token, "expire": expire_s})


def _bot(feishu: LocalFeishu, call: Call) -> Answer:
    app = feishu.world.app
    bot = {
        "activate_status": 2,
        "app_name": app.bot_name,
        "avatar_url": "",
        "ip_white_list": [],
        "open_id": app.bot_open_id,
    }
    return Answer(body={"code": 0, "msg": "ok", "bot": bot})
