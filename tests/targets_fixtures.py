"""Short ways to say what the tests of targets/ say often."""

from collections.abc import AsyncGenerator, Iterable

from agno_lark.targets import RunEvent, RunRequest, RunView, fold


def event(name: str, index: int | None = None, /, **data: object) -> RunEvent:
    """An event of the run "r", unless the data says otherwise."""
    return RunEvent(name=name, index=index, data={"run_id": "r", **data})


def folded(events: Iterable[RunEvent], view: RunView | None = None) -> RunView:
    view = view or RunView(run_id="r")
    for one in events:
        view = fold(view, one)
    return view


async def seen(stream: AsyncGenerator[RunEvent], view: RunView) -> RunView:
    """The view at the stream's end."""
    async for one in stream:
        view = fold(view, one)
    return view


def request(message: str, name: str, *, session: str = "") -> RunRequest:
    """A request whose ids all come from `name`."""
    return RunRequest(
        message=message,
        session_id=session or f"session-{name}",
        user_id="ou_test",
        run_id=f"run-{name}",
        turn_id=f"turn-{name}",
        metadata={"chat": "oc_test"},
    )
