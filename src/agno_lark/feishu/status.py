"""How a long connection is doing, for the status page, the health checks and the log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from agno_lark.clock import Clock

__all__ = ["ConnectionState", "ConnectionStatus", "Tally"]

# Event types come from outside: past this many different ones, the rest share a name.
_MAX_TYPES = 200


class ConnectionState(StrEnum):
    """Where a connection stands. `sentence` is for people."""

    CONNECTING = "connecting"  # discovery or handshake under way
    CONNECTED = "connected"  # events arrive
    WAITING = "waiting"  # an attempt failed or the socket was lost; the next attempt has its time
    REFUSED = "refused"  # a final code: no further attempt
    CLOSED = "closed"  # stopped, or not started yet

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    ConnectionState.CONNECTING: "Connecting to Feishu.",
    ConnectionState.CONNECTED: "Connected to Feishu; events arrive.",
    ConnectionState.WAITING: "Not connected to Feishu; the next attempt follows by itself.",
    ConnectionState.REFUSED: "Feishu refused the connection for good; a setting has to be changed.",
    ConnectionState.CLOSED: "The connection to Feishu is closed.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionStatus:
    """A snapshot. Times are UTC epoch milliseconds.

    `detail`: why it is not connected, empty while it is. `events`: deliveries by event type, repeats included;
    `failures`: of them, those acknowledged with 500 (`late` of these for taking too long); `malformed`: frames and
    events nobody could read; `in_flight`: events being accepted now.
    """

    app_id: str
    state: ConnectionState
    detail: str
    connected_since_ms: int | None
    last_frame_ms: int | None
    reconnects: int
    events: Mapping[str, int]
    failures: int
    late: int
    malformed: int
    in_flight: int

    @property
    def sentence(self) -> str:
        return f"{self.state.sentence} {self.detail}".strip()


@dataclass(kw_only=True, slots=True)
class Tally:
    """The connection's running notes, from which snapshots are taken."""

    app_id: str
    clock: Clock
    state: ConnectionState = ConnectionState.CLOSED
    detail: str = ""
    connected_since_ms: int | None = None
    last_frame_ms: int | None = None
    connections: int = 0
    failures: int = 0
    late: int = 0
    malformed: int = 0
    in_flight: int = 0
    _events: dict[str, int] = field(default_factory=dict)

    def enter(self, state: ConnectionState, detail: str = "") -> None:
        self.state, self.detail = state, detail
        if state is ConnectionState.CONNECTED:
            self.connections += 1
            self.connected_since_ms = self.clock.now_ms()
        else:
            self.connected_since_ms = None

    def frame(self) -> None:
        self.last_frame_ms = self.clock.now_ms()

    def event(self, event_type: str) -> None:
        name = event_type if event_type in self._events or len(self._events) < _MAX_TYPES else "other"
        self._events[name] = self._events.get(name, 0) + 1

    def snapshot(self) -> ConnectionStatus:
        return ConnectionStatus(
            app_id=self.app_id,
            state=self.state,
            detail=self.detail,
            connected_since_ms=self.connected_since_ms,
            last_frame_ms=self.last_frame_ms,
            reconnects=max(0, self.connections - 1),
            events=MappingProxyType(dict(self._events)),
            failures=self.failures,
            late=self.late,
            malformed=self.malformed,
            in_flight=self.in_flight,
        )
