"""Devices: what is known of each key of a model with learners by key, in bounded memory.

A device is silent when it sends nothing for much longer than usual, its sensor when the device sends without it. Its
error is high when it exceeds that of most other devices. Transitions are collected for the alerts; each has some
hysteresis, so that a device at the edge does not change state all the time.
"""

from __future__ import annotations

import heapq
import statistics
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from varifold.ensemble.per_key import Key, KeyedLearner
from varifold.serve.core.monitor import LONGEST

Status = Literal["ok", "sensor", "error", "silent"]

MOST = 10_000
"""Most devices that are tracked, unless the learner keeps fewer keys.

Beyond that, one without a learner is not tracked, and for one with a learner another is dropped: one whose learner was
forgotten, or else the one silent for longest.
"""
MOST_SENSORS = 64
"""Most sensors of a device that are tracked."""
_MOST_TRANSITIONS = 10_000
_REGULAR = 10
"""Instances from which a device or a sensor counts as regular, so that its silence is meaningful."""
_LEAST_SILENCE = 5_000
"""Milliseconds of silence that are never worth an alert."""
_TIMES = 10
"""How many times the usual pause a silence is; of a device, with the spread of its pauses added."""
_BACK = 3
"""Instances after which what was silent counts as back."""
_CHECK = 4
"""Instances of a device between two looks for silent sensors."""
_SCORED = 50
"""Scored predictions from which an error is compared."""
_FAST, _SLOW = 1.0 / 20.0, 1.0 / 500.0
_ERROR = 1.0 / 50.0
"""Part of the newest loss in a recent error: with 1/20 chance alone made a false alert in 35,000 readings."""
_ABOVE = 0.25
"""Least distance from the median of a share of wrong predictions that is high."""
_ORDER: dict[Status, int] = {"silent": 0, "error": 1, "sensor": 2, "ok": 3}


class Transition(NamedTuple):
    """A change of a device: of itself, of a sensor, or of its error."""

    kind: Literal["device-silent", "device-back", "sensor-silent", "sensor-back", "device-error", "device-error-normal"]
    key: Key
    detail: str = ""


class Device:
    """Counts of one device."""

    _STORED = (
        "instances", "labels", "first", "last", "pause", "spread", "scored", "error", "usual", "delay", "silent",
        "high", "since_back", "sensors", "silent_sensors",
    )  # fmt: skip
    __slots__ = (*_STORED, "prediction")

    def __init__(self, now: int) -> None:
        self.instances = 0
        self.labels = 0
        self.first = now
        self.last = now
        self.pause = 0.0
        """Usual milliseconds between two instances."""
        self.spread = 0.0
        """Usual distance of a pause from that: 0 for a device that sends regularly."""
        self.scored = 0
        self.error = 0.0
        self.usual = 0.0
        self.delay: float | None = None
        """Usual milliseconds from a prediction to its label."""
        self.prediction: Any = None
        self.silent = False
        self.high = False
        self.since_back = 0
        self.sensors: dict[str, list[int]] = {}  # name -> [first, last, count], in instances of the device
        self.silent_sensors: dict[str, int] = {}  # name -> count of the sensor when it came back, or 0

    @property
    def status(self) -> Status:
        """Status of the device: the worst of what is wrong with it."""
        if self.silent:
            return "silent"
        if self.high:
            return "error"
        return "sensor" if self.silent_sensors else "ok"

    @property
    def longest(self) -> float:
        """Milliseconds of silence after which the device counts as silent."""
        return max(_LEAST_SILENCE, _TIMES * (self.pause + self.spread))

    def dump(self) -> list[Any]:
        """Return what is stored: all but the last prediction."""
        return [getattr(self, name) for name in self._STORED]

    @classmethod
    def load(cls, stored: list[Any]) -> Device:
        """Restore what `dump` returned."""
        device = cls(0)
        for name, value in zip(cls._STORED, stored, strict=True):
            setattr(device, name, value)
        return device


class Devices:
    """All devices of a model."""

    def __init__(self) -> None:
        self._devices: OrderedDict[Key, Device] = OrderedDict()  # the one that was silent for longest first
        self._transitions: list[Transition] = []
        self._bound: float | None = None  # error above which a device's is high
        self._most = MOST
        self._learner: KeyedLearner | None = None

    def __len__(self) -> int:
        return len(self._devices)

    def get(self, key: Key) -> Device | None:
        """Return a device; None if it is unknown."""
        return self._devices.get(key)

    def bound(self, learner: KeyedLearner) -> None:
        """Track no more devices than the learner keeps keys, and drop those that are too many."""
        self._learner = learner
        self._most = MOST if learner.max_keys is None else min(MOST, learner.max_keys)
        self._drop()

    def _drop(self) -> None:
        while len(self._devices) > self._most:
            del self._devices[next(self._forgotten(), next(iter(self._devices)))]

    def _forgotten(self) -> Iterator[Key]:
        """Return the devices without a learner; none is sought where learners are kept for more keys than devices."""
        learner = self._learner
        if learner is None or learner.max_keys is None or learner.max_keys > MOST:
            return iter(())
        return (key for key in self._devices if not self._learned(key))

    def _learned(self, key: Key) -> bool:
        """Return whether the learner of a device is kept."""
        learner = self._learner
        return learner is None or learner.holds(key) or learner.disk_bytes(key) > 0

    # ------------------------------------------------------------------ updates

    def observe(self, key: Key, x: Mapping[str, Any], now: int) -> None:
        """Count an instance of a device, without its key, at a time in milliseconds."""
        device = self._devices.get(key)
        if device is None:
            if len(self._devices) >= self._most and not self._learned(key):
                return
            device = self._devices[key] = Device(now)
            self._drop()
        else:
            self._devices.move_to_end(key)
        n = device.instances = device.instances + 1
        if device.silent:
            device.since_back += 1
            if device.since_back >= _BACK:
                device.silent = False
                self._add("device-back", key)
        elif n > 1 and now >= device.last:  # or the clock was set back
            pause, part = now - device.last, max(_FAST, 1.0 / (n - 1))
            device.pause += part * (pause - device.pause)
            device.spread += part * (abs(pause - device.pause) - device.spread)
        device.last = now
        sensors = device.sensors
        for name, value in x.items():
            if value is None:
                continue
            seen = sensors.get(name)
            if seen is not None:
                seen[1] = n
                seen[2] += 1
            elif len(sensors) < MOST_SENSORS and len(name) <= LONGEST:
                sensors[name] = [n, n, 1]
        if n % _CHECK == 0:
            self._check_sensors(key, device)

    def _check_sensors(self, key: Key, device: Device) -> None:
        n = device.instances
        gone: list[str] = []
        for name, (first, last, count) in device.sensors.items():
            absent = n - last
            if name in device.silent_sensors:
                if absent > 100 * _TIMES:
                    gone.append(name)
                elif count >= device.silent_sensors[name] + _BACK:
                    del device.silent_sensors[name]
                    self._add("sensor-back", key, name)
            elif count < _REGULAR:
                if absent > 100:
                    gone.append(name)
            elif absent > _TIMES * max(1.0, (last - first) / (count - 1)):
                device.silent_sensors[name] = count
                self._add("sensor-silent", key, name)
        for name in gone:
            del device.sensors[name]
            device.silent_sensors.pop(name, None)

    def predicted(self, key: Key, label: Any) -> None:
        """Record the last prediction for a device."""
        device = self._devices.get(key)
        if device is not None:
            device.prediction = label

    def labelled(self, key: Key, delay: int | None, loss: float | None) -> None:
        """Count a label of a device: milliseconds since its prediction, and the loss of that, if they are known."""
        device = self._devices.get(key)
        if device is None:
            return
        device.labels += 1
        if delay is not None:
            device.delay = float(delay) if device.delay is None else device.delay + _FAST * (delay - device.delay)
        if loss is not None:
            self.scored(key, loss)

    def scored(self, key: Key, loss: float) -> None:
        """Add the loss of a prediction for a device, or of a detector, whether it was an alarm."""
        device = self._devices.get(key)
        if device is None:
            return
        device.scored += 1
        device.error += max(_ERROR, 1.0 / device.scored) * (loss - device.error)
        device.usual += max(_SLOW, 1.0 / device.scored) * (loss - device.usual)
        bound = self._bound
        if bound is None or device.scored < _SCORED:
            return
        if not device.high and device.error > bound:
            device.high = True
            self._add("device-error", key, f"{device.error:.3g}")
        elif device.high and device.error < 0.7 * bound:
            device.high = False
            self._add("device-error-normal", key, f"{device.error:.3g}")

    def _add(self, kind: Any, key: Key, detail: str = "") -> None:
        if len(self._transitions) < _MOST_TRANSITIONS:
            self._transitions.append(Transition(kind, key, detail))

    # ------------------------------------------------------------------ looking

    def check(self, now: int) -> list[Transition]:
        """Look for devices that fell silent; return the transitions since the last call."""
        for key, device in self._devices.items():
            device.last = min(device.last, now)  # the clock may have been set back
            if not device.silent and now - device.last > device.longest and device.instances >= _REGULAR:
                device.silent = True
                device.since_back = 0
                self._add("device-silent", key)
        found, self._transitions = self._transitions, []
        return found

    def compare_errors(self, *, shares: bool) -> None:
        """Set the error from which a device's is high: far above most others'. `shares`: errors are shares of 1."""
        errors = [device.error for device in self._devices.values() if device.scored >= _SCORED]
        if len(errors) < 5:
            self._bound = None
            return
        middle = statistics.median(errors)
        spread = 1.4826 * statistics.median(abs(error - middle) for error in errors)
        self._bound = middle + max(5.0 * spread, _ABOVE if shares else 2.0 * middle)

    def counts(self) -> dict[str, int]:
        """Count devices by status."""
        counts: dict[str, int] = dict.fromkeys(_ORDER, 0)
        for device in self._devices.values():
            counts[device.status] += 1
        return counts

    def worst(self, most: int, search: str = "") -> list[dict[str, Any]]:
        """Describe the devices whose key contains a text, those in trouble first."""
        wanted = search.casefold()
        some = ((key, one) for key, one in self._devices.items() if wanted in str(key).casefold())
        worst = heapq.nsmallest(
            most,
            some,
            key=lambda item: (_ORDER[item[1].status], -item[1].error, -len(item[1].silent_sensors), str(item[0])),
        )
        return [self.describe(key, device) for key, device in worst]

    def describe(self, key: Key, device: Device) -> dict[str, Any]:
        """Describe a device."""
        return {
            "key": key,
            "status": device.status,
            "instances": device.instances,
            "labels": device.labels,
            "first": device.first,
            "last": device.last,
            "per_second": 1_000.0 / device.pause if device.pause else None,
            "error": device.error if device.scored else None,
            "usual_error": device.usual if device.scored else None,
            "scored": device.scored,
            "label_delay": device.delay,
            "prediction": device.prediction,
            "silent_sensors": sorted(device.silent_sensors),
        }

    def sensors(self, device: Device) -> list[dict[str, Any]]:
        """Describe the sensors of a device."""
        n = device.instances
        return [
            {
                "name": name,
                "presence": "silent" if name in device.silent_sensors else "here" if n - last < 100 else "gone",
                "first": first,
                "last": last,
                "count": count,
                "share": round(count / max(1, n - first + 1), 3),
            }
            for name, (first, last, count) in sorted(device.sensors.items())
        ]

    # ------------------------------------------------------------------ storing

    def dump(self) -> list[Any]:
        """Return everything that is stored, as JSON."""
        return [[key, *device.dump()] for key, device in self._devices.items()]

    def fill(self, stored: Iterable[list[Any]]) -> None:
        """Restore what `dump` returned."""
        self._devices = OrderedDict((key, Device.load(rest)) for key, *rest in stored)
