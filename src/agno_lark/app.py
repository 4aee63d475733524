"""The bridge: puts the parts together; start, drain, stop."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from itertools import count
from typing import Any

from agno_lark import crash
from agno_lark.clock import Clock, Ids, RandomIds, SystemClock
from agno_lark.commands import COMMAND, SAY, STOP_RUN, CommandHandler
from agno_lark.errors import AgnoLarkError, StoreError
from agno_lark.feishu.api import OpenApi
from agno_lark.feishu.codes import CallRefused
from agno_lark.feishu.connection import Connection
from agno_lark.feishu.status import ConnectionState
from agno_lark.intake import Intake
from agno_lark.jobs import JobKind, Queue, Runner, counts
from agno_lark.locale import say
from agno_lark.operate import whereabouts
from agno_lark.replies import REPLY, CardMemory, CardWriter, Deliverer, Place, Poster, Reactions, waiting_replies
from agno_lark.retention import Retention, rules
from agno_lark.settings import Settings
from agno_lark.store import InstanceLock, Store, other_of_app, read_once
from agno_lark.targets import FollowLimits, RemoteTarget, Target, TargetInfo, TargetType
from agno_lark.turns import TURN, RunRow, TurnHandler, remember_reaction

__all__ = ["Bridge"]

logger = logging.getLogger(__name__)

BOT_INFO_WAITS_S = (1.0, 2.0, 5.0, 10.0, 30.0)
DESCRIBE_AGAIN_S, DESCRIBE_SOON_S = 60.0, 5.0


class Bridge:
    """One app's bridge. `async with bridge.running():` holds the lock, the database and all loops.

    `address` is where the process that runs it can be reached; a second daemon on the same state file is told so.
    May be run again once it has stopped. Without a `target` the settings must name one, or `SettingsError` is raised; a
    function makes one for each life, which is closed at its end.
    """

    def __init__(
        self,
        settings: Settings,
        target: Target | Callable[[], Target] | None = None,
        *,
        address: str = "no address",
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self.settings = settings
        self._address = address
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._make_target: Callable[[], Target] | None = None
        if target is None:
            settings.require_target()
            self._make_target = lambda: _remote_target(settings, self._clock)
        elif not isinstance(target, Target):
            self._make_target = target
        self._target = target if isinstance(target, Target) else self._made_target()
        self._target_info: TargetInfo | None = None
        self._store: Store | None = None
        self._runner: Runner | None = None
        self._turns: TurnHandler | None = None
        self._intake: Intake | None = None
        self._connection: Connection | None = None
        self._started_ms = 0
        self._draining = False
        self._failed: AgnoLarkError | None = None
        self.ended = asyncio.Event()  # set when the bridge cannot go on; `failure` says why

    @property
    def failure(self) -> AgnoLarkError | None:
        """Why the bridge cannot go on, or None."""
        return self._failed

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start; on leaving, drain and stop. What is not done by then goes on at the next start.

        Raises `AlreadyRunningError`, `StoreError`, `NewerSchemaError`, and `SettingsError` for a crash point outside a
        sandbox. A refusal by Feishu comes later: see `ended`.
        """
        crash.arm(os.environ.get(crash.VARIABLE), in_sandbox=self.settings.in_sandbox)
        async with contextlib.AsyncExitStack() as stack:
            instance_id = stack.enter_context(InstanceLock.hold(self.settings.feishu_state_db, self._address))
            app = f"{self.settings.feishu_app_id} {self.settings.lark_api_base_url}"
            if other := stack.enter_context(other_of_app(app, self._address)):
                logger.warning(
                    "another bridge of the same app runs here, on another state file (%s): each gets a part of the "
                    "events; stop one of them",
                    other,
                    extra={"action": "second_bridge_of_app", "other": other},
                )
            store = await stack.enter_async_context(Store.open(self.settings.feishu_state_db, clock=self._clock))
            self._store = store
            self._begin_life()
            if self._make_target is not None:
                stack.push_async_callback(self._target.aclose)
            api = await stack.enter_async_context(
                OpenApi(
                    self.settings.feishu_app_id,
                    self.settings.feishu_app_secret.get_secret_value(),
                    self.settings.lark_api_base_url,
                    timeout_s=self.settings.lark_api_timeout,
                    clock=self._clock,
                )
            )
            reactions = Reactions(
                api, lambda turn_id, reaction_id: store.transact(remember_reaction, turn_id, reaction_id)
            )
            self._runner = self._make_runner(store, api, reactions, instance_id)
            main = asyncio.create_task(self._main(store, api, self._runner, reactions), name="agno-lark-main")
            main.add_done_callback(self._main_ended)
            try:
                yield
            finally:
                await self._drain(main)
                await reactions.close()
                self._store = None

    def is_ready(self) -> bool:
        """Events arrive, can be understood and be committed."""
        return self.not_ready_why() is None

    def not_ready_why(self) -> str | None:
        """In a word, why the bridge is not ready; None while it is."""
        if self._failed is not None:
            return "failed"
        if self._draining:
            return "draining"
        if self._store is None:
            return "not_running"
        if self._store.trouble is not None:
            return self._store.trouble.reason
        if self._connection is None or self._connection.snapshot().state is not ConnectionState.CONNECTED:
            return "not_connected"
        return None if self._intake is not None and self._intake.bot_open_id else "bot_unknown"

    def turns_under_way(self) -> int:
        """How many turns this process is at work on."""
        return self._runner.running(Queue.TURNS) if self._runner is not None else 0

    async def status(self) -> dict[str, Any]:
        """What `GET /feishu/status` shows; no secrets, nobody's words. Times are UTC epoch milliseconds."""
        now_ms = self._clock.now_ms()
        connection: dict[str, Any] = {"state": "starting"}
        if self._connection is not None:
            connection = asdict_plain(self._connection.snapshot())
        last = connection.get("last_frame_ms")
        jobs: dict[str, int] = {}
        replies: dict[str, object] = {}
        if self._store is not None:
            with contextlib.suppress(StoreError):  # what cannot be read is told by `store`
                jobs = await counts(self._store)
                replies = await waiting_replies(self._store)
        return {
            "ready": self.is_ready(),
            "draining": self._draining,
            "failure": str(self._failed) if self._failed else None,
            "app_id": self.settings.feishu_app_id,
            "started_ms": self._started_ms,
            "uptime_ms": now_ms - self._started_ms if self._started_ms else 0,
            "connection": connection | {"last_frame_age_ms": now_ms - last if last else None},
            "target": asdict_plain(self._target_info) if self._target_info else None,
            "store": _store_status(self._store),
            "jobs": jobs,
            "replies": replies,
            "finished": dict(self._runner.finished) if self._runner else {},
            "intake": dict(self._intake.counts) if self._intake else {},
            "open_to_everyone": self.settings.open_to_everyone,
        }

    async def whereabouts(self, given: str) -> dict[str, Any] | None:
        """Where a message is, by its id or its job's or run's; None where nothing is known of it. No words, no names.

        Reads only: it answers also while nothing can be written. Raises `StoreError`.
        """
        path = self.settings.feishu_state_db
        found = await asyncio.to_thread(read_once, path, self._clock.now_ms(), whereabouts, given)
        return asdict(found) if found else None

    def _begin_life(self) -> None:
        """Nothing of a former life: an app may be stopped and started again."""
        if self._started_ms and self._make_target is not None:  # the one of the former life is closed
            self._target = self._made_target()
        self._started_ms = self._clock.now_ms()
        self._target_info = self._intake = self._connection = self._failed = None
        self._draining = False
        self.ended = asyncio.Event()

    def _made_target(self) -> Target:
        assert self._make_target is not None  # noqa: S101 - asked for only where the target is ours
        return self._make_target()

    def _make_runner(self, store: Store, api: OpenApi, reactions: Reactions, instance_id: str) -> Runner:
        poster = Poster(api)

        def open_card(place: Place, memory: CardMemory, row: RunRow) -> CardWriter:
            heading = say("turn.heading.again", row.language) if row.retry_of else ""
            return CardWriter(api, poster, place, memory, turn_id=row.turn_id, lang=row.language, heading=heading)

        turns = TurnHandler(
            store=store,
            target=self._target,
            open_card=open_card,
            reactions=reactions,
            clock=self._clock,
            ids=self._ids,
        )
        commands = CommandHandler(
            store=store,
            target=self._target,
            target_name=self._target_name,
            clock=self._clock,
            stopping=turns.stopping,
        )
        deliverer = Deliverer(store=store, poster=poster, replies=turns, clock=self._clock)
        kinds = (
            JobKind(
                name=TURN,
                prepare=turns.prepare,
                handle=turns.handle,
                reconcile=turns.reconcile,
                give_up=turns.give_up,
            ),
            JobKind(name=COMMAND, handle=commands.command),
            JobKind(name=SAY, handle=commands.say),
            JobKind(name=STOP_RUN, handle=commands.stop_run),
            JobKind(name=REPLY, prepare=deliverer.prepare, handle=deliverer.handle, give_up=deliverer.give_up),
        )
        self._turns = turns
        return Runner(
            store,
            {kind.name: kind for kind in kinds},
            clock=self._clock,
            ids=self._ids,
            instance_id=instance_id,
            turns_at_once=self.settings.bridge_max_turns,
        )

    async def _main(self, store: Store, api: OpenApi, runner: Runner, reactions: Reactions) -> None:
        """Everything that runs until the stop. Ends early only by a failure (see `_main_ended`)."""
        if self.settings.open_to_everyone:
            logger.warning(
                "no allowlist is set: everyone who can write to the bot is answered "
                "(FEISHU_ALLOWED_USER_IDS, FEISHU_ALLOWED_CHAT_IDS)",
                extra={"action": "open_to_everyone"},
            )
        intake = Intake(
            store=store,
            settings=self.settings,
            target=(str(self._target.type), self._target.id),
            clock=self._clock,
            ids=self._ids,
            started_ms=self._started_ms,
            taken=reactions.take,
            superseded=self._superseded,
        )
        connection = Connection(
            self.settings.feishu_app_id,
            self.settings.feishu_app_secret.get_secret_value(),
            self.settings.lark_api_base_url,
            intake.accept,
            clock=self._clock,
        )
        self._intake, self._connection = intake, connection
        assert self._turns is not None  # noqa: S101 - made with the runner
        try:
            async with asyncio.TaskGroup() as parts:
                parts.create_task(store.until_damaged(), name="store")
                parts.create_task(runner.run(), name="runner")
                parts.create_task(self._describe(), name="describe-target")
                parts.create_task(self._learn_bot(api, intake), name="learn-bot")
                parts.create_task(connection.run(), name="connection")
                retention = Retention(store, rules(self.settings), clock=self._clock)
                parts.create_task(retention.run(), name="retention")
                parts.create_task(self._turns.tidy_up(), name="tidy-up")
        except* AgnoLarkError as group:
            self._failed = _first(group)
            logger.error("the bridge cannot go on: %s", self._failed, extra={"action": "bridge_failed"})

    def _main_ended(self, main: asyncio.Task[None]) -> None:
        """Whatever ended it is known at once: a bridge inside somebody's app has nobody who waits for this task."""
        if not main.cancelled() and (bug := main.exception()) is not None:
            self._failed = AgnoLarkError("the bridge ended by a fault of its own; its log has the cause")
            logger.error("the bridge ended by a fault of its own", extra={"action": "bridge_bug"}, exc_info=bug)
        self.ended.set()

    async def _learn_bot(self, api: OpenApi, intake: Intake) -> None:
        """Find out the bot's own id, without which nobody can tell whether a message in a group mentions it.

        Beside the connection, not before it: the console saves the long-connection mode only while the app is
        connected, and an app that was never published may not be told its bot yet.
        """
        told = ""
        for attempt in count():
            try:
                intake.bot_open_id = (await api.bot_info()).open_id
                reason = "the app has no bot: add the bot ability, then publish a version"
            except CallRefused as error:
                reason = str(error)
            if intake.bot_open_id:
                return
            if reason != told:
                logger.warning("the bot is not known yet", extra={"action": "bot_info_failed", "reason": reason})
                told = reason
            await asyncio.sleep(BOT_INFO_WAITS_S[min(attempt, len(BOT_INFO_WAITS_S) - 1)])

    async def _describe(self) -> None:
        """Keep a description of the target that is at most a minute old; say so when what it promises changes."""
        while True:
            info = await self._target.describe()
            before, self._target_info = self._target_info, info
            told = (before.reachable, before.note) if before else (None, "")
            if info.reachable is False and told[0] is not False:
                logger.warning("the AgentOS does not answer", extra={"action": "target_unreachable", "note": info.note})
            elif info.note and info.note != told[1]:
                logger.warning("about the target", extra={"action": "target_note", "note": info.note})
            await asyncio.sleep(DESCRIBE_AGAIN_S if info.reachable else DESCRIBE_SOON_S)

    def _superseded(self, turn_id: str) -> None:
        """A turn was taken from its handler in the transaction that accepted a newer message."""
        assert self._turns is not None  # noqa: S101 - set before anything is accepted
        assert self._runner is not None  # noqa: S101
        self._turns.superseded(turn_id)
        self._runner.interrupt(turn_id)

    def _target_name(self) -> str:
        return self._target_info.name if self._target_info and self._target_info.name else self._target.id

    async def _drain(self, main: asyncio.Task[None]) -> None:
        self._draining = True
        if self._connection is not None and not main.done():
            await self._connection.stop()
        if self._runner is not None:
            interrupted = await self._runner.drain(self.settings.bridge_drain_timeout)
            if interrupted:
                logger.info(
                    "turns were interrupted; they go on at the next start",
                    extra={"action": "drained", "interrupted": interrupted},
                )
        main.cancel()
        await asyncio.wait({main})
        if self._turns is not None:
            await self._turns.close()


def _remote_target(settings: Settings, clock: Clock) -> RemoteTarget:
    return RemoteTarget(
        base_url=settings.agentos_url,
        target_type=TargetType(settings.agentos_target_type),
        target_id=settings.agentos_target_id,
        token=settings.agentos_token.get_secret_value(),
        limits=FollowLimits(run_timeout_s=settings.bridge_run_timeout, lost_s=settings.bridge_lost_run_timeout),
        clock=clock,
    )


def _store_status(store: Store | None) -> dict[str, Any]:
    trouble = store.trouble if store else None
    return {
        "ok": store is not None and trouble is None,
        "reason": str(trouble.reason) if trouble else None,
        "since_ms": trouble.since_ms if trouble else None,
    }


def asdict_plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON-ready values; read-only mappings become dicts."""
    names = value.__dataclass_fields__
    plain = {name: getattr(value, name) for name in names}
    return {name: dict(item) if isinstance(item, Mapping) else item for name, item in plain.items()}


def _first(group: BaseExceptionGroup[AgnoLarkError]) -> AgnoLarkError:
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    raise AssertionError("an exception group is never empty")
