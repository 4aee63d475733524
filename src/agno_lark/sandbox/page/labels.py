"""The page's own sentences, in the chosen person's language."""

from collections.abc import Mapping, Sequence

__all__ = ["examples_for", "labels_for"]

# key: (English, Chinese)
SENTENCES: dict[str, tuple[str, str]] = {
    "attach": ("Attach a picture or file", "发送图片或文件"),
    "back": ("All chats", "全部会话"),
    "bot": ("Bot", "机器人"),
    "cancel": ("Cancel", "取消"),
    "cancel_reply": ("Don't reply", "取消回复"),
    "cannot_reach": ("The sandbox can't be reached. Is it still running?", "连接不上沙箱，它还在运行吗？"),
    "chats": ("Chats", "会话"),
    "chat_with": ("Conversation with {name}", "与{name}的会话"),
    "close": ("Close", "关闭"),
    "confirm": ("Confirm", "确定"),
    "copied": ("Copied", "已复制"),
    "direct": ("Direct chat", "单聊"),
    "download": ("Download", "下载"),
    "edited": ("edited", "已编辑"),
    "empty_direct": ("Ask {bot} something", "和 {bot} 聊聊吧"),
    "empty_direct_more": (
        "Write a message below, or start with one of these.",
        "在下方输入消息，或者从下面选一个开始。",
    ),
    "empty_group": ("A group with {bot} in it", "{bot} 也在这个群里"),
    "empty_group_more": ("Mention @{bot} and it will answer.", "在群里 @{bot}，它就会回复。"),
    "empty_topic": ("Every message opens a topic", "每条消息都会开启一个话题"),
    "empty_topic_more": ("Mention @{bot} to have it answer in that topic.", "@{bot}，它会在该话题里回复。"),
    "examples": ("Suggestions", "试试看"),
    "group": ("Group · {count} people", "群聊 · {count} 人"),
    "hint_keys": ("Enter to send, Shift+Enter for a new line", "Enter 发送，Shift+Enter 换行"),
    "jump": ("Newest messages", "最新消息"),
    "mention": ("Mention someone", "提及某人"),
    "message_to": ("Message {name}", "发消息给 {name}"),
    "more": ("Actions on this message", "消息操作"),
    "new_topic": ("New topic in {name}", "在 {name} 发起新话题"),
    "offline": ("Bot not connected", "机器人未连接"),
    "open_topic": ("Reply in a topic", "以话题形式回复"),
    "picture": ("Picture", "图片"),
    "people": ("You are", "当前身份"),
    "react": ("React", "添加表情回复"),
    "recall": ("Recall", "撤回"),
    "recalled_mine": ("You recalled a message", "你撤回了一条消息"),
    "recalled_other": ("{name} recalled a message", "{name} 撤回了一条消息"),
    "replies_to": ("Replying to {name}", "回复 {name}"),
    "reply": ("Reply", "回复"),
    "reply_topic": ("Reply in this topic", "回复话题"),
    "required": ("Please fill in what is required", "请填写必填项"),
    "retrying": ("Reconnecting…", "正在重新连接…"),
    "sandbox": ("Local Feishu sandbox", "本地飞书沙箱"),
    "send": ("Send", "发送"),
    "title": ("agno-lark sandbox", "agno-lark 沙箱"),
    "too_large": ("Files up to 30 MB can be sent", "文件不能超过 30 MB"),
    "topic": ("Topic", "话题"),
    "topic_group": ("Topic group · {count} people", "话题群 · {count} 人"),
    "unread": ("new", "新消息"),
}
# Chosen so that the demo's agent shows what it can: answer, stream, call a tool, be stopped, obey a command.
EXAMPLES = {
    "en": (
        "Hello",
        "Write a long Markdown answer",
        "What is the weather in Lisbon?",
        "Count slowly to 60",
        "/help",
    ),
    "zh": ("你好", "写一篇长的 Markdown 回答", "上海今天天气怎么样？", "慢慢数到 60", "/help"),
}
MOST_EXAMPLES = 8


def labels_for(language: str) -> Mapping[str, str]:
    """All sentences in zh or en (any other language reads English)."""
    index = 1 if language == "zh" else 0
    return {key: texts[index] for key, texts in SENTENCES.items()}


def examples_for(language: str, asked: Sequence[str], world: object) -> list[str]:
    """The messages offered to a newcomer.

    In this order: `?example=` of the address, the world's `examples` (a list, or a dict zh/en of lists), our own.
    """
    own = getattr(world, "examples", None)
    if isinstance(own, Mapping):
        own = own.get(language) or own.get("en")
    chosen = [text.strip() for text in asked if text.strip()] or [str(text) for text in own or ()]
    return (chosen or list(EXAMPLES.get(language, EXAMPLES["en"])))[:MOST_EXAMPLES]
