"""The words of the READMEs' generated tables that the code does not hold: Chinese ones, and a few English ones.

The code's own English is used wherever it has some. A key that is missing here, or that the code no longer has, stops
`tools/readme_tables.py`.
"""

from collections.abc import Mapping

__all__ = [
    "CHAT_COMMANDS",
    "CLI_COMMANDS_ZH",
    "CONTROL_VERBS_ZH",
    "EXIT_CODES_ZH",
    "HEADINGS",
    "ROUTES_ZH",
    "SCOPES",
    "SETTINGS_ZH",
    "STATUS_FIELDS",
    "TERMS",
]

type Words = Mapping[str, str]

TERMS: Mapping[str, Words] = {
    "required": {"en": "**required**", "zh": "**必填**"},
    "empty": {"en": "empty", "zh": "空"},
    "or_file": {"en": "or {name}", "zh": "或 {name}"},
    "short_for": {"en": "{alias} is the same.", "zh": "{alias} 与之相同。"},
    "optional": {"en": "optional", "zh": "可选"},
    "needed": {"en": "yes", "zh": "是"},
}

HEADINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "settings": {"en": ("Setting", "Default", "Meaning"), "zh": ("配置项", "默认值", "含义")},
    "chat-commands": {"en": ("Command", "What it does"), "zh": ("命令", "作用")},
    "cli-commands": {"en": ("Command", "What it does"), "zh": ("命令", "作用")},
    "exit-codes": {"en": ("Code", "Meaning"), "zh": ("退出码", "含义")},
    "routes": {"en": ("Route", "What it tells"), "zh": ("路由", "说明")},
    "status-fields": {"en": ("Field", "Meaning"), "zh": ("字段", "含义")},
    "control-verbs": {"en": ("Verb", "Fields", "What it does"), "zh": ("操作", "字段", "作用")},
    "scopes": {"en": ("Scope", "Needed", "What for"), "zh": ("权限标识", "必需", "用途")},
}

SETTINGS_ZH: Words = {
    "feishu_app_id": "飞书/Lark 应用的 App ID。",
    "feishu_app_secret": "同一应用的 App Secret。",
    "agentos_url": "AgentOS 的地址。",
    "agentos_token": "访问 AgentOS 的 Bearer 令牌（即它的 OS_SECURITY_KEY）。留空则不发送。",
    "agentos_target_type": "由谁来回答：agent、team 或 workflow。",
    "agentos_target_id": "它在 AgentOS 上的 ID。`AGENTOS_AGENT_ID` 是智能体专用的旧名称。",
    "agentos_agent_id": "AGENTOS_TARGET_ID 的旧名称，仅用于智能体。",
    "feishu_state_db": "状态数据库（SQLite）。一个守护进程用一个文件，请放在本地磁盘上。",
    "feishu_allowed_user_ids": "允许与机器人对话的用户 open id，用逗号分隔。留空表示所有人。",
    "feishu_allowed_chat_ids": "机器人提供服务的会话 ID，用逗号分隔。留空表示全部。"
    "上一项所列的用户始终可以私聊机器人。",
    "feishu_allow_bots": "是否回复其他机器人的消息。",
    "feishu_group_session_mode": "在群里：每个成员各自一个对话（user），或每个群、每个话题共用一个（shared）。",
    "feishu_private_interrupt": "在私聊中：新消息会停止仍在回答上一条消息的运行。",
    "feishu_language": "机器人自身提示语的语言：zh、en，或 auto（跟随用户）。",
    "lark_api_base_url": "`https://open.feishu.cn`；国际版应用用 `https://open.larksuite.com`；沙箱用它的本机地址。",
    "lark_api_timeout": "调用一次飞书接口最多等待的秒数。",
    "lark_data_max_rows": "一次读取表格或多维表格最多返回的行数。",
    "lark_data_max_cells": "一次读取最多返回的单元格数。",
    "lark_base_page_size": "读取多维表格时每页的记录数。",
    "bridge_host": "状态与健康检查接口的监听地址。默认仅本机。",
    "bridge_port": "上述接口的端口；0 表示任选空闲端口。",
    "bridge_max_turns": "最多同时运行多少个对话，其余的排队等待。",
    "bridge_run_timeout": "一次运行完全没有动静超过这么多秒就放弃，并告知用户。",
    "bridge_lost_run_timeout": "AgentOS 重启后仍标为运行中、实际已中断的运行，超过这么多秒就放弃，并告知用户。",
    "bridge_drain_timeout": "停止时等待正在进行的任务的秒数；没做完的在下次启动后继续。",
    "bridge_dedup_hours": "已接收的事件再次到达时，在多少小时内能认出是重复。"
    "飞书会在大约七小时内重复投递事件，因此不得少于八小时。",
    "bridge_keep_days": "已结束的任务和运行记录保留的天数。没有结束的、结果未知的始终保留。",
    "log_level": "debug、info、warning 或 error。",
    "log_format": "text、json，或 auto（终端上用 text）。",
}

CHAT_COMMANDS: Mapping[str, Words] = {
    "new": {
        "en": "Begin a new conversation. What was said before is left behind; a run still under way ends in its own "
        "card. Text behind it is the first message of the new conversation.",
        "zh": "开始新的对话，之前的内容不再带入；仍在进行的运行在它自己的卡片里结束。"
        "命令后面的文字就是新对话的第一条消息。",
    },
    "status": {
        "en": "What is running, waiting and just done in this conversation.",
        "zh": "查看本对话中正在运行、等待和刚完成的任务。",
    },
    "cancel": {
        "en": "Stop the newest run of this conversation; `/cancel <run id>` stops a particular one (the first six "
        "characters of its id are enough).",
        "zh": "停止本对话中最新的一次运行；`/cancel <运行编号>` 停止指定的运行（给出编号的前六位即可）。",
    },
    "retry": {
        "en": "Ask again what the newest failed or open turn of this conversation asked (open: its outcome is unknown, "
        "or it came too late); `/retry <run id>` a particular one.",
        "zh": "重新提问本对话中最新失败或悬而未决（结果未知，或送达太晚）的问题；`/retry <运行编号>` 指定某一次。",
    },
    "dismiss": {
        "en": "Leave the newest open turn of this conversation as it is; `/dismiss <run id>` a particular one.",
        "zh": "不再处理本对话中最新的悬而未决的问题；`/dismiss <运行编号>` 指定某一次。",
    },
    "help": {"en": "Show these commands.", "zh": "显示这些命令。"},
}

CLI_COMMANDS_ZH: Words = {
    "": "飞书/Lark 与 Agno AgentOS 之间的桥接服务。不带子命令时作为守护进程运行。",
    "demo": "零配置体验整个产品：本地飞书、离线 AgentOS 和桥接服务。",
    "sandbox": "用来开发机器人的本地飞书：开放平台接口、长连接和网页聊天。",
    "jobs list": "最新的任务。",
    "jobs show": "这条消息在哪里？查不到时退出码为 1。",
    "jobs retry": "重新提问失败、结果未知或送达太晚的问题；没能显示的回答再发送一次。",
    "jobs cancel": "撤回等待中的，停止运行中的，结果未知的不再处理。",
    "health": "询问正在运行的守护进程是否就绪，退出码为 0 或 1。用于容器健康检查。",
}

EXIT_CODES_ZH: Mapping[int, str] = {
    0: "按要求结束",
    1: "未曾预料的错误",
    2: "某个配置项或选项有误",
    3: "另一个守护进程正在使用同一个状态文件",
    4: "状态数据库无法使用",
    5: "飞书拒绝了应用或连接",
}

ROUTES_ZH: Words = {
    "/feishu/status": "运行情况：连接、队列、计数。",
    "/healthz": "进程正常时返回 200；无法继续、应当重启时返回 503。",
    "/readyz": "能收到事件并能保存时返回 200，否则返回 503。",
}

CONTROL_VERBS_ZH: Words = {
    "write": "某人发送一条文字消息。",
    "write_post": "某人发送一条富文本消息。",
    "send_file": "某人发送文件（`data` 为 base64）；`kind` 为 `image` 时是图片。",
    "merge_forward": "某人合并转发几条消息。",
    "recall": "某人撤回一条消息。",
    "react": "某人给消息添加或取消表情回复。",
    "click": "某人操作卡片上的控件；返回机器人的应答。",
    "press": "某人点击文字为 `label` 的按钮。",
    "add_person": "增加一个人，并为其建立私聊。",
    "add_group": "增加一个包含所有人和机器人的群；带 `topics` 则是话题群。",
    "emit": "原样投递一个完整的事件。",
    "fail": "接下来 `times` 次对 `path` 的调用失败；null 表示一直失败。",
    "latency": "`path` 的调用要等待这么久。",
    "reset": "连接在生效之前或之后断开。",
    "drop_sockets": "立即断开所有长连接。",
    "silence": "当前所有长连接不再有任何动静。",
    "next_events": "接下来的事件会重复、延迟、分片、乱序或换事件 ID；只改变给出的项。",
    "clear_faults": "清除所有故障。",
    "advance": "让时间立即前进。",
    "expire_tokens": "已发放的令牌全部失效。",
    "limits": "设置频率限制；0 表示不限。",
    "redelivery": "设置确认时限和重新投递的间隔。",
    "client_config": "设置告知客户端的心跳和重连参数，以整秒计。",
}

STATUS_FIELDS: Mapping[str, Words] = {
    "ready": {
        "en": "Whether events arrive and can be stored, as `/readyz`.",
        "zh": "能否收到并保存事件，同 `/readyz`。",
    },
    "draining": {"en": "Whether the bridge is being stopped.", "zh": "是否正在停止。"},
    "failure": {"en": "Why the bridge cannot go on, or null.", "zh": "无法继续的原因；正常时为 null。"},
    "app_id": {"en": "The app.", "zh": "应用的 App ID。"},
    "started_ms": {"en": "When it was started (UTC, milliseconds).", "zh": "启动时间（UTC 毫秒）。"},
    "uptime_ms": {"en": "For how long it has run.", "zh": "已运行的毫秒数。"},
    "connection": {
        "en": "The long connection: `state` (starting, connecting, connected, waiting, refused, closed) and its "
        "`detail`; `app_id`; `connected_since_ms`, `last_frame_ms` and `last_frame_age_ms`; `reconnects`; `events` by "
        "type, of them `in_flight` now and `failures` (not stored, so Feishu delivers them again), of these `late` "
        "ones; `malformed` frames and events.",
        "zh": "长连接：`state`（starting、connecting、connected、waiting、refused、closed）及其说明 `detail`；"
        "`app_id`；`connected_since_ms`、`last_frame_ms`、`last_frame_age_ms`；重连次数 `reconnects`；"
        "各类事件数 `events`，其中正在处理的 `in_flight`、失败的 `failures`（没有保存，飞书会再次投递）"
        "和因超时失败的 `late`；无法解析的帧和事件 `malformed`。",
    },
    "target": {
        "en": "Who answers: `type`, `id`, `name`, `address`; whether it is `reachable`, has a `durable_queue`, and is "
        "`resumable` (null: not known yet); `note` names its limits.",
        "zh": "由谁回答：`type`、`id`、`name`、`address`；能否连上 `reachable`，有无持久队列 `durable_queue`，"
        "断线后能否继续 `resumable`（null 表示尚不清楚）；`note` 说明它的限制。",
    },
    "store": {
        "en": "The state database: whether it is `ok`; else the `reason` why nothing can be committed (disk_full, "
        "locked, read_only, disk_error, damaged) and `since_ms`.",
        "zh": "状态数据库：是否正常 `ok`；无法提交时给出原因 `reason`（disk_full、locked、read_only、disk_error、"
        "damaged）和开始时间 `since_ms`。",
    },
    "jobs": {
        "en": "Jobs that are waiting or running now, and those nobody knows the end of (`….unknown`).",
        "zh": "当前等待和运行中的任务数，以及结果未知的（`….unknown`）。",
    },
    "replies": {
        "en": "Answers Feishu has not confirmed yet: how many are `waiting`, since when the oldest is (`since_ms`), "
        "and an `error` that keeps one from being shown.",
        "zh": "飞书尚未确认的回答：等待的数量 `waiting`、最早一条的时间 `since_ms`，以及导致未能显示的 `error`。",
    },
    "finished": {"en": "Jobs finished since the start, by kind and end.", "zh": "启动以来完成的任务数，按种类和结果。"},
    "intake": {
        "en": "What became of events since the start. Taken: `message.turn` (a run), `message.control` (a command, "
        "or a sentence of the bridge's own), `message.duplicate` (known already). Not let in: `message.denied` (and "
        "told so), `message.foreign_chat`, `message.foreign_user`. Passed over: `message.not_addressed`, "
        "`message.own`, `message.bot`, `message.passed` (a command that came too late to mean anything), `ignored.…` "
        "by event type, `malformed`. Buttons: `click.…` by what was answered.",
        "zh": "启动以来各类事件的处理结果。已接收：`message.turn`（一次运行）、`message.control`（命令或 agno-lark "
        "自己的提示）、`message.duplicate`（已处理过）。不允许：`message.denied`（已告知对方）、`message.foreign_chat`、"
        "`message.foreign_user`。略过：`message.not_addressed`、`message.own`、`message.bot`、`message.passed`（来得太晚、已无意义的"
        "命令）、`ignored.…`（按事件类型）、`malformed`。按钮：`click.…`（按应答）。",
    },
    "open_to_everyone": {"en": "Whether both allowlists are empty.", "zh": "两个允许名单是否都为空。"},
}

# Scope → whether it is needed, the calls of `OpenApi` or the events it is for, and why. The narrowest that does, from
# payloads/README.md, "Limits and scopes".
SCOPES: Mapping[str, tuple[bool, tuple[str, ...], Words]] = {
    "im:message.p2p_msg:readonly": (
        True,
        ("im.message.receive_v1",),
        {"en": "Receive direct messages to the bot.", "zh": "接收用户私聊机器人的消息。"},
    ),
    "im:message.group_at_msg:readonly": (
        True,
        ("im.message.receive_v1",),
        {"en": "Receive messages in groups that mention the bot.", "zh": "接收群里 @ 机器人的消息。"},
    ),
    "im:message:send_as_bot": (
        True,
        ("send_message", "reply_message", "patch_message"),
        {"en": "Send answers and reply to messages.", "zh": "发送和回复消息。"},
    ),
    "im:message.reactions:write_only": (
        True,
        ("add_reaction", "delete_reaction"),
        {
            "en": "The emoji that says a message was taken. Without it answers come all the same.",
            "zh": "用表情回复表示消息已收到。没有它也会正常回答。",
        },
    ),
    "cardkit:card:write": (
        True,
        ("create_card", "update_card", "update_element_content", "update_card_settings"),
        {
            "en": "Cards that grow while the agent answers. Without it the answer comes in one piece at the end.",
            "zh": "让卡片随回答逐字更新。没有它，回答会在结束时一次给出。",
        },
    ),
    "im:message.group_at_msg.include_bot:readonly": (
        False,
        ("im.message.receive_v1",),
        {
            "en": "Receive other bots' mentions too; only with `FEISHU_ALLOW_BOTS=true`.",
            "zh": "同时接收其他机器人的 @ 消息，仅在 `FEISHU_ALLOW_BOTS=true` 时需要。",
        },
    ),
    "im:message.reactions:read": (
        False,
        ("own_reaction",),
        {
            "en": "Find the emoji again that was put there just before the bridge was killed. Without it, it stays.",
            "zh": "找回桥接服务被杀死前刚添加的表情回复。没有它，那一个会留下。",
        },
    ),
    "im:chat:read": (
        False,
        (),
        {"en": "Read what kind of group a chat is. Not used yet.", "zh": "读取群的类型。当前版本尚未使用。"},
    ),
    "im:resource": (
        False,
        ("upload_file",),
        {
            "en": "An answer whose text Feishu refuses comes as a file. Pictures and files of people: not used yet.",
            "zh": "当飞书拒绝显示回答的文字时，改为以文件发送。用户发来的图片和文件当前版本尚未使用。",
        },
    ),
}
