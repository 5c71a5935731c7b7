"""``varifold serve``: a model server that learns and loses nothing."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from varifold.cli.numbers import positive, size
from varifold.errors import ParameterError


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve",
        help="serve models that learn, over HTTP and MQTT",
        description="Serve models that learn: predict now, learn when the label comes, survive any stop. "
        "The dashboard is at /, the description of all routes at /openapi.json.",
        allow_abbrev=False,
    )
    parser.add_argument("--dir", type=Path, metavar="DIR", help="folder of the state; made if missing")
    parser.add_argument("--check", type=Path, metavar="DIR", help="test the state in a folder, without serving it")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on, 0 for any (default 8080)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="lines `read TOKEN` and `write TOKEN`")
    _add_durability(parser)
    _add_alerts(parser)
    _add_mqtt(parser)


def _add_durability(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("durability and limits")
    group.add_argument(
        "--fsync",
        choices=["group", "always", "never"],
        default="group",
        help="changes reach the disk together (default), one by one, or when the system likes (a crash of the machine "
        "then loses some)",
    )
    group.add_argument("--snapshot-every", type=positive, default=100_000, metavar="N", help="changes (default 100000)")
    group.add_argument(
        "--max-waiting", type=positive, default=100_000, metavar="N", help="instances that wait for a label"
    )
    group.add_argument(
        "--max-wait", type=float, default=7 * 24.0, metavar="HOURS", help="how long they wait (default 168)"
    )
    group.add_argument(
        "--max-ids", type=positive, default=100_000, metavar="N", help="ids remembered against duplicates"
    )
    group.add_argument(
        "--max-labels", type=positive, default=1_000, metavar="N", help="labels of a classifier (default 1000)"
    )
    group.add_argument(
        "--max-memory",
        type=size,
        metavar="SIZE",
        help="of all learners, such as 500M or 8G (default three quarters of the machine's or container's)",
    )
    group.add_argument(
        "--max-model-memory", type=size, metavar="SIZE", help="of one model's learners (default: as of all)"
    )
    group.add_argument(
        "--max-body", type=positive, default=1 << 20, metavar="BYTES", help="of a request (default 1 MiB)"
    )
    group.add_argument(
        "--max-batch", type=positive, default=64 << 20, metavar="BYTES", help="of a batch (default 64 MiB)"
    )
    group.add_argument(
        "--max-connections", type=positive, metavar="N", help="at a time (default 4096, or fewer by the file limit)"
    )


def _add_alerts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("alerts")
    group.add_argument(
        "--alert-error",
        type=_bounds,
        default=(None, {}),
        metavar="E|MODEL=E,...",
        help="alert when the recent error exceeds it: a share of wrong predictions for all classifiers, or a bound by "
        "model, for regressors of the mean absolute error (such as 0.3 or 0.3,price=20)",
    )
    group.add_argument("--alert-webhook", metavar="URL", help="alerts are posted there as JSON")
    group.add_argument(
        "--alert-command", metavar="COMMAND", help="run for each alert, which it gets as JSON on its input"
    )


def _bounds(text: str) -> tuple[float | None, dict[str, float]]:
    """Parse the error bound of all classifiers, and bounds by model."""
    every: float | None = None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.rpartition("=")
        try:
            bound = float(value)
        except ValueError:
            bound = -1.0
        if not 0.0 <= bound < math.inf or (equals and not name) or name in found or (not equals and every is not None):
            raise argparse.ArgumentTypeError(f"{part!r} is no number >= 0 and not MODEL=number, each given once")
        if equals:
            found[name] = bound
        else:
            every = bound
    return every, found


def _add_mqtt(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("MQTT")
    group.add_argument("--mqtt", metavar="HOST:PORT", help="broker to take readings from")
    group.add_argument("--readings", metavar="TOPIC", help="such as plant/+/reading; + is the key of one learner each")
    group.add_argument("--labels", metavar="TOPIC", help='such as plant/+/label; payload {"id": ..., "y": ...}')
    group.add_argument("--predictions", metavar="TOPIC", help="such as plant/{key}/prediction")
    group.add_argument("--mqtt-model", default="mqtt", metavar="NAME", help="the model that is fed (default mqtt)")
    group.add_argument("--mqtt-method", default="auto", metavar="METHOD", help="its method if it is new (default auto)")
    group.add_argument("--mqtt-login", type=Path, metavar="FILE", help="file with a line USER:PASSWORD")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or test a folder."""
    if (args.dir is None) == (args.check is None):
        raise ParameterError("give --dir, the folder of the state, or --check, the folder to test")
    if args.check is not None:
        return _check(args.check)
    if not 0 <= args.port <= 65_535:
        raise ParameterError(f"--port {args.port} is not between 0 and 65535")
    if not args.max_wait > 0:
        raise ParameterError(f"--max-wait {args.max_wait} is not a number of hours above 0")
    from varifold.serve import server
    from varifold.serve.alerts import AlertRules
    from varifold.serve.core.models import Policy
    from varifold.serve.core.state import Limits
    from varifold.serve.http.app import BodyLimits

    above, by_model = args.alert_error
    return server.serve(
        server.Settings(
            args.dir,
            host=args.host,
            port=args.port,
            token_file=args.token_file,
            policy=Policy(args.fsync, args.snapshot_every),
            limits=Limits(args.max_waiting, int(args.max_wait * 3_600_000), args.max_ids, labels=args.max_labels),
            bodies=BodyLimits(args.max_body, args.max_batch),
            alerts=AlertRules(above, by_model, webhook=args.alert_webhook, command=args.alert_command),
            topics=_topics(args),
            connections=args.max_connections,
            memory=args.max_memory,
            model_memory=args.max_model_memory,
        )
    )


def _check(folder: Path) -> int:
    """Print the state of a folder; return 1 if anything is wrong with it."""
    from varifold.serve.core.check import check_folder
    from varifold.serve.core.state import Limits

    lines, sound = check_folder(folder, Limits())
    for line in lines:
        print(line)
    return 0 if sound else 1


def _topics(args: argparse.Namespace) -> Any:
    if args.mqtt is None:
        given = next((name for name in ("readings", "labels", "predictions") if getattr(args, name)), None)
        if given:
            raise ParameterError(f"--{given} needs --mqtt HOST:PORT")
        return None
    if args.readings is None:
        raise ParameterError("--mqtt needs --readings TOPIC")
    from varifold.serve.mqtt import Topics

    login = args.mqtt_login.read_text("utf-8").strip() if args.mqtt_login else ""
    user, _, password = login.partition(":")
    return Topics(
        args.mqtt,
        args.readings,
        args.labels,
        args.predictions,
        args.mqtt_model,
        args.mqtt_method,
        user or None,
        password or None,
    )
