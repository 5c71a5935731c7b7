"""Events of a stream's features, grouped: twelve sensors that fall silent together are one event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from varifold.base.estimator import Name

__all__ = ["Event", "EventLog", "Kind"]

Kind = Literal["birth", "silence", "return", "stuck", "drift", "unit change", "rename"]
_MOST_EVENTS = 1000
_SEARCHED = 32
"""Latest events among which one is looked for that a feature can join."""


@dataclass
class Event:
    """Something that happened to one feature or to several at once.

    `step` is the instance at which it began (counted from 1), `detected` the one at which it was noticed. `detail`
    describes the change of a single feature, by feature.
    """

    kind: Kind
    step: int
    detected: int
    features: list[Name] = field(default_factory=list)
    detail: dict[Name, str] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = [f"{name} ({self.detail[name]})" if name in self.detail else str(name) for name in self.features[:8]]
        rest = len(self.features) - len(shown)
        return f"{self.step:,} {self.kind}: {', '.join(shown)}{f' and {rest:,} more' if rest else ''}"


class EventLog:
    """Latest events, oldest first; a feature joins an event of the same kind that began at about the same step."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, kind: Kind, step: int, detected: int, name: Name, detail: str = "", within: float = 0.0) -> Event:
        """Add a feature to an event that began at most `within` instances away, or to a new one."""
        event = next(
            (e for e in self._events[: -_SEARCHED - 1 : -1] if e.kind == kind and abs(e.step - step) <= within), None
        )
        if event is None:
            event = Event(kind, step, detected)
            self._events.append(event)
            del self._events[:-_MOST_EVENTS]
        if name not in event.features:
            event.features.append(name)
        if detail:
            event.detail[name] = detail
        return event

    def dump(self) -> list[dict[str, Any]]:
        """Return the events as JSON."""
        return [{**asdict(e), "detail": list(e.detail.items())} for e in self._events]

    def fill(self, saved: list[dict[str, Any]]) -> None:
        """Restore what `dump` returned."""
        self._events = [Event(**{**e, "detail": dict(map(tuple, e["detail"]))}) for e in saved]
