"""im/v1 images, files and messages' resources (payloads/README.md, Resources)."""

from agno_lark.sandbox.calls import Answer, Call, Routes, Upload
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Message, Resource
from agno_lark.sandbox.refusals import Refused

__all__ = ["register"]

IMAGE_BYTES = 10 * 1024 * 1024
FILE_BYTES = 30 * 1024 * 1024
_HEADS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
_FILE_TYPES = frozenset(["opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"])


def register(routes: Routes) -> None:
    """feishu.md section 4."""
    routes.add("POST", "/open-apis/im/v1/images", "image.upload")(_image)
    routes.add("POST", "/open-apis/im/v1/files", "file.upload")(_file)
    routes.add("GET", "/open-apis/im/v1/images/:key", "image.get")(_own_file)
    routes.add("GET", "/open-apis/im/v1/files/:key", "file.get")(_own_file)
    routes.add("GET", "/open-apis/im/v1/messages/:message_id/resources/:key", "resource.get")(_resource)


def _upload(call: Call, field: str, limit: int) -> Upload:
    upload = call.form.get(field)
    if not isinstance(upload, Upload):
        raise Refused(234001, f"Invalid request param: {field}.")
    if not upload.data:
        raise Refused(234010, "file size is 0.")
    if len(upload.data) > limit:
        raise Refused(234006, "The file size exceed the max value.")
    return upload


def _image(feishu: LocalFeishu, call: Call) -> Answer:
    if call.form.get("image_type") not in ("message", "avatar"):
        raise Refused(234001, "Invalid request param: image_type.")
    upload = _upload(call, "image", IMAGE_BYTES)
    kind = next((kind for head, kind in _HEADS.items() if upload.data.startswith(head)), None)
    if kind is None:
        raise Refused(234011, "Can't recognize the image format.")
    resource = feishu.world.keep(upload.data, upload.name or "image", kind="image", content_type=kind, by_bot=True)
    return Answer.data({"image_key": resource.key})


def _file(feishu: LocalFeishu, call: Call) -> Answer:
    """`file_type` opus is sent as audio and mp4 as media, everything else as file (230055 else)."""
    file_type, name = call.form.get("file_type"), call.form.get("file_name")
    if file_type not in _FILE_TYPES or not isinstance(name, str) or not name:
        raise Refused(234001, "Invalid request param: file_type or file_name.")
    upload = _upload(call, "file", FILE_BYTES)
    content_type = file_type if file_type in ("opus", "mp4") else upload.content_type or "application/octet-stream"
    resource = feishu.world.keep(upload.data, name, kind="file", content_type=str(content_type), by_bot=True)
    return Answer.data({"file_key": resource.key})


def _resource(feishu: LocalFeishu, call: Call) -> Answer:
    """The key must be that very message's; children of a merged forward answer 234003, the container's id works."""
    kind = call.ask("type")
    if kind not in ("image", "file"):
        raise Refused(234001, "Invalid request param: type.")
    message = feishu.world.messages.get(call.params["message_id"])
    if message is None:
        raise Refused(234001, "Invalid request param: message_id.")
    if message.recalled:
        raise Refused(230110, "Action unavailable as the message has been deleted.")
    if message.msg_type in ("sticker", "interactive", "folder"):
        raise Refused(234043, "Unsupported message type.")
    if not feishu.world.chats[message.chat_id].has_bot:
        raise Refused(234004, "The app is not in the chat.")
    found = _find(feishu, message, call.params["key"])
    if found is None or (found.kind == "image") != (kind == "image"):
        raise Refused(234003, "File not in msg.")
    return _download(found)


def _own_file(feishu: LocalFeishu, call: Call) -> Answer:
    """What the app itself uploaded, by key alone; people's files need their message."""
    found = feishu.world.uploads.get(call.params["key"])
    if found is None or not found.by_bot:
        raise Refused(234008, "The app is not the resource sender.")
    return _download(found)


def _download(found: Resource) -> Answer:
    headers = {
        "content-type": found.content_type if "/" in found.content_type else "application/octet-stream",
        "content-disposition": f'attachment; filename="{found.name}"',
    }
    return Answer(raw=found.data, headers=headers)


def _find(feishu: LocalFeishu, message: Message, key: str) -> Resource | None:
    if key in message.resources:
        return message.resources[key]
    waiting = list(message.children)
    while waiting:
        child = feishu.world.messages[waiting.pop()]
        if key in child.forwarded:
            return child.forwarded[key]
        waiting += child.children
    return None
