"""What can be asked of the control endpoint: one model a verb, its fields the JSON, `run` what it does."""

import base64
import binascii
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agno_lark.sandbox.limits import Limits
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Json, Message

__all__ = ["VERBS", "Ask"]


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("must be base64") from None


type Base64 = Annotated[bytes, BeforeValidator(_decoded)]
type Count = Annotated[int, Field(ge=1, le=1000)]
type Seconds = Annotated[float, Field(ge=0, le=10**7)]


class Ask(BaseModel):
    """A verb. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    verb: ClassVar[str]

    @classmethod
    def fields_told(cls) -> str:
        """Its fields in order, those that may be left out in brackets; "no fields" where there are none."""
        shown = [name if field.is_required() else f"[{name}]" for name, field in cls.model_fields.items()]
        return ", ".join(shown) or "no fields"

    async def run(self, feishu: LocalFeishu) -> Json:
        raise NotImplementedError


def _made(message: Message) -> Json:
    return {"message_id": message.message_id, "chat_id": message.chat_id, "thread_id": message.thread_id}


# -- people ----------------------------------------------------------------------------------------------------------


class Write(Ask):
    """A person writes text."""

    verb = "write"
    person: str
    chat_id: str
    text: str
    mention_bot: bool = False
    mentions: list[str] = []
    reply_to: str | None = None
    in_thread: str | None = None
    new_topic: bool = False

    async def run(self, feishu: LocalFeishu) -> Json:
        message = await feishu.world.write(
            self.person,
            self.chat_id,
            self.text,
            mention_bot=self.mention_bot,
            mentions=self.mentions,
            reply_to=self.reply_to,
            in_thread=self.in_thread,
            new_topic=self.new_topic,
        )
        return _made(message)


class WritePost(Ask):
    """A person writes rich text."""

    verb = "write_post"
    person: str
    chat_id: str
    post: dict[str, Any]
    reply_to: str | None = None
    in_thread: str | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        return _made(
            await feishu.world.write_post(
                self.person, self.chat_id, self.post, reply_to=self.reply_to, in_thread=self.in_thread
            )
        )


class SendFile(Ask):
    """A person sends a file or, with kind `image`, a picture; `data` is base64."""

    verb = "send_file"
    person: str
    chat_id: str
    data: Base64
    name: str = "file"
    kind: Literal["file", "image"] = "file"
    in_thread: str | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        send = feishu.world.send_image if self.kind == "image" else feishu.world.send_file
        return _made(await send(self.person, self.chat_id, self.data, self.name, in_thread=self.in_thread))


class MergeForward(Ask):
    """A person forwards several messages as one."""

    verb = "merge_forward"
    person: str
    chat_id: str
    message_ids: list[str]

    async def run(self, feishu: LocalFeishu) -> Json:
        return _made(await feishu.world.merge_forward(self.person, self.chat_id, self.message_ids))


class Recall(Ask):
    """A person takes a message back."""

    verb = "recall"
    person: str
    message_id: str

    async def run(self, feishu: LocalFeishu) -> Json:
        return _made(await feishu.world.recall(self.person, self.message_id))


class React(Ask):
    """A person puts an emoji under a message, or takes it away."""

    verb = "react"
    person: str
    message_id: str
    emoji: str

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"reaction_id": (await feishu.world.react(self.person, self.message_id, self.emoji)).reaction_id}


class Click(Ask):
    """A person uses a card's control; answers with what the bot answered."""

    verb = "click"
    person: str
    message_id: str
    action: dict[str, Any]

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"answer": await feishu.world.click(self.person, self.message_id, self.action)}


class Press(Ask):
    """A person presses the button that reads `label`."""

    verb = "press"
    person: str
    message_id: str
    label: str
    form_value: dict[str, Any] | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        answer = await feishu.world.press(self.person, self.message_id, self.label, form_value=self.form_value)
        return {"answer": answer}


class AddPerson(Ask):
    """One more person, with a direct chat."""

    verb = "add_person"
    name: Annotated[str, Field(min_length=1, max_length=100)]
    language: Literal["zh", "en"] = "en"

    async def run(self, feishu: LocalFeishu) -> Json:
        person = feishu.world.add_person(self.name, language=self.language)
        return {"open_id": person.open_id, "chat_id": feishu.world.direct_chat(person).chat_id}


class AddGroup(Ask):
    """One more group of everybody and the bot; with `topics` a topic group."""

    verb = "add_group"
    name: Annotated[str, Field(min_length=1, max_length=100)]
    topics: bool = False

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"chat_id": feishu.world.add_group(self.name, topics=self.topics).chat_id}


class Emit(Ask):
    """Deliver a whole event envelope as it is."""

    verb = "emit"
    envelope: dict[str, Any]

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"event_id": feishu.deliveries.post_raw(self.envelope)}


# -- faults ----------------------------------------------------------------------------------------------------------


class Fail(Ask):
    """The next `times` calls of `path` fail; null means for ever."""

    verb = "fail"
    path: str
    times: Count | None = 1
    status: Annotated[int, Field(ge=200, le=599)] = 500
    code: int | None = None
    message: str = "sandbox fault"
    headers: dict[str, str] = {}
    body: str | None = None
    after_effect: bool = False

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.faults.fail(
            self.path,
            times=self.times,
            status=self.status,
            code=self.code,
            message=self.message,
            headers=self.headers,
            body=self.body,
            after_effect=self.after_effect,
        )
        return feishu.faults.as_json()


class Latency(Ask):
    """Calls of `path` wait."""

    verb = "latency"
    path: str
    seconds: Seconds
    times: Count | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.faults.latency(self.path, self.seconds, times=self.times)
        return feishu.faults.as_json()


class Reset(Ask):
    """The connection breaks, before or after the effect."""

    verb = "reset"
    path: str
    after_effect: bool = False
    times: Count | None = 1

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.faults.reset(self.path, after_effect=self.after_effect, times=self.times)
        return feishu.faults.as_json()


class DropSockets(Ask):
    """Every WebSocket breaks now."""

    verb = "drop_sockets"

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"sockets": feishu.faults.drop_sockets()}


class Silence(Ask):
    """Every WebSocket open now falls silent."""

    verb = "silence"

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"sockets": feishu.faults.silence()}


class NextEvents(Ask):
    """The next events come twice, late, in parts, out of order or under a new id; only what is given is changed."""

    verb = "next_events"
    duplicate: Count | None = None
    delay_s: Seconds | None = None
    parts: Count | None = None
    reorder: Count | None = None
    new_event_id: Count | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        faults = feishu.faults
        if self.duplicate is not None:
            faults.duplicate_next(self.duplicate)
        if self.delay_s is not None:
            faults.delay_next(self.delay_s)
        if self.parts is not None:
            faults.split_next(self.parts)
        if self.reorder is not None:
            faults.reorder_next(self.reorder)
        if self.new_event_id is not None:
            faults.new_event_id_next(self.new_event_id)
        return faults.as_json()


class ClearFaults(Ask):
    """Nothing goes wrong any more."""

    verb = "clear_faults"

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.faults.clear()
        return feishu.faults.as_json()


# -- the platform itself ---------------------------------------------------------------------------------------------


class Advance(Ask):
    """Let time pass at once."""

    verb = "advance"
    seconds: Seconds

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.world.clock.advance(self.seconds)
        return {"now_ms": feishu.world.clock.now_ms()}


class ExpireTokens(Ask):
    """Every token issued so far stops working."""

    verb = "expire_tokens"

    async def run(self, feishu: LocalFeishu) -> Json:
        return {"tokens": feishu.tokens.expire_all()}


class SetLimits(Ask):
    """Other rates; 0 means unlimited."""

    verb = "limits"
    api_per_s: int = 50
    api_per_min: int = 1000
    sends_per_chat_per_s: int = 5
    patches_per_message_per_s: int = 5
    operations_per_card_per_s: int = 10

    async def run(self, feishu: LocalFeishu) -> Json:
        feishu.limits = Limits(**self.model_dump())
        return self.model_dump()


class Redelivery(Ask):
    """Another time to ack in, another schedule."""

    verb = "redelivery"
    ack_s: Annotated[float, Field(gt=0)] | None = None
    redelivery_s: list[Seconds] | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        deliveries = feishu.deliveries
        if self.ack_s is not None:
            deliveries.ack_s = self.ack_s
        if self.redelivery_s is not None:
            deliveries.redelivery_s = tuple(self.redelivery_s)
        return {"ack_s": deliveries.ack_s, "redelivery_s": list(deliveries.redelivery_s)}


class SetClientConfig(Ask):
    """What discovery and pongs tell from now on; whole seconds."""

    verb = "client_config"
    reconnect_count: Annotated[int, Field(ge=-1)] | None = None
    reconnect_interval_s: Count | None = None
    reconnect_nonce_s: Count | None = None
    ping_interval_s: Count | None = None

    async def run(self, feishu: LocalFeishu) -> Json:
        for name, value in self.model_dump(exclude_none=True).items():
            setattr(feishu.client_config, name, value)
        return feishu.client_config.as_json()


VERBS: dict[str, type[Ask]] = {ask.verb: ask for ask in Ask.__subclasses__()}
