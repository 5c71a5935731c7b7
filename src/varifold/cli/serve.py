"""``varifold serve``: a model server that learns and loses nothing."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from varifold.cli.configuration import Options, table_as_toml
from varifold.cli.numbers import positive, size
from varifold.errors import ParameterError


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve",
        help="serve models that learn, over HTTP, MQTT and Kafka",
        description="Serve models that learn: predict now, learn when the label comes, survive any stop. "
        "The dashboard is at /, the description of all routes at /openapi.json.",
        epilog='Every option can also be set in the file of --config (host = "0.0.0.0") or by an environment variable '
        "(VARIFOLD_HOST); the command line comes first, then the environment, then the file.",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file with options, and models to make: tables [models.NAME] with method, params, key, max_keys, "
        "input and ask",
    )
    parser.add_argument("--print-config", action="store_true", help="print the options in use as TOML, and stop")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="folder of the state; made if missing")
    parser.add_argument("--check", type=Path, metavar="DIR", help="test the state in a folder, without serving it")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on, 0 for any (default 8080)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="lines `read TOKEN` and `write TOKEN`, each for all models or with models=NAME,...; read again on SIGHUP",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate in PEM; read again on SIGHUP")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key")
    parser.add_argument("--log", choices=["text", "json"], default="text", help="form of the log (default text)")
    parser.add_argument(
        "--drain", type=positive, default=10, metavar="SECONDS", help="for open requests when stopping (default 10)"
    )
    _add_durability(parser)
    _add_alerts(parser)
    _add_mqtt(parser)
    _add_kafka(parser)
    parser.set_defaults(options=Options(parser, other=("config", "print_config", "check")))


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
        metavar="E|MODEL=E,...",
        help="alert when the recent error exceeds it: a share of wrong predictions for all classifiers, or a bound by "
        "model, for regressors of the mean absolute error (such as 0.3 or 0.3,price=20)",
    )
    group.add_argument("--alert-webhook", metavar="URL", help="alerts are posted there as JSON")
    group.add_argument(
        "--alert-command", metavar="COMMAND", help="run for each alert, which it gets as JSON on its input"
    )


class ErrorBounds(tuple[float | None, dict[str, float]]):
    """Error bound of all classifiers, and bounds by model."""

    text = ""


def _bounds(text: str) -> ErrorBounds:
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
    bounds = ErrorBounds((every, found))
    bounds.text = text
    return bounds


def _add_mqtt(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("MQTT")
    group.add_argument("--mqtt", metavar="HOST:PORT", help="broker to take readings from")
    group.add_argument(
        "--readings",
        metavar="TOPIC",
        help="such as plant/{line}/{key}/reading: {key} (or +) is the key of a learner, other names are features",
    )
    group.add_argument("--labels", metavar="TOPIC", help='such as plant/+/label; payload {"id": ..., "y": ...}')
    group.add_argument("--predictions", metavar="TOPIC", help="such as plant/{key}/prediction")
    group.add_argument("--mqtt-model", default="mqtt", metavar="NAME", help="the model that is fed (default mqtt)")
    group.add_argument("--mqtt-method", default="auto", metavar="METHOD", help="its method if it is new (default auto)")
    group.add_argument(
        "--mqtt-input", type=_rules, metavar="JSON", help='its input rules if it is new, such as {"time": "ts"}'
    )
    group.add_argument("--mqtt-login", type=Path, metavar="FILE", help="file with a line USER:PASSWORD")
    group.add_argument("--mqtt-tls", action="store_true", default=False, help="connect with TLS")
    group.add_argument("--mqtt-ca", type=Path, metavar="FILE", help="authority of the broker's certificate, in PEM")
    group.add_argument("--mqtt-version", choices=["3.1.1", "5"], default="5", help="of the protocol (default 5)")


def _add_kafka(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Kafka")
    group.add_argument("--kafka", metavar="HOST:PORT,...", help="brokers to read from (needs the extra kafka)")
    group.add_argument("--kafka-readings", metavar="TOPIC", help="readings as JSON; each is learned once")
    group.add_argument("--kafka-labels", metavar="TOPIC", help='labels of readings: {"id": ..., "y": ...}')
    group.add_argument("--kafka-predictions", metavar="TOPIC", help="to write predictions to")
    group.add_argument("--kafka-model", default="kafka", metavar="NAME", help="the model that is fed (default kafka)")
    group.add_argument("--kafka-method", default="auto", metavar="METHOD", help="its method if it is new")
    group.add_argument(
        "--kafka-keyed", action="store_true", default=False, help="if it is new: one learner per key of the messages"
    )
    group.add_argument("--kafka-input", type=_rules, metavar="JSON", help="its input rules if it is new")
    group.add_argument(
        "--kafka-from", choices=["earliest", "latest"], default="earliest", help="where a new model starts to read"
    )
    group.add_argument(
        "--kafka-config", type=Path, metavar="FILE", help="properties of librdkafka, NAME=VALUE: TLS, SASL"
    )


def _rules(text: str) -> Any:
    from varifold.base.json_text import read_json
    from varifold.errors import VarifoldError
    from varifold.serve.core.input import InputRules

    try:
        rules = InputRules.from_json(read_json(text.encode()))
    except VarifoldError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    rules.text = text  # type: ignore[attr-defined]
    return rules


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or test a folder."""
    if args.check is not None:
        if args.dir is not None:
            raise ParameterError("give --dir, the folder of the state, or --check, the folder to test")
        return _check(args.check)
    tables = args.options.fill(args, args.config)
    models = _models(tables, args.config)
    if args.print_config:
        print(args.options.as_toml(args))
        for name, table in tables.get("models", {}).items():
            print(f"\n{table_as_toml(f'models.{name}', table)}")
        return 0
    if args.dir is None:
        raise ParameterError("give --dir, the folder of the state, or --check, the folder to test")
    if not 0 <= args.port <= 65_535:
        raise ParameterError(f"--port {args.port} is not between 0 and 65535")
    if not args.max_wait > 0:
        raise ParameterError(f"--max-wait {args.max_wait} is not a number of hours above 0")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise ParameterError("--tls-cert and --tls-key belong together: give both")
    for name in ("token_file", "tls_cert", "tls_key", "mqtt_login", "mqtt_ca", "kafka_config"):
        path = getattr(args, name)
        if path is not None and not path.is_file():
            raise ParameterError(f"--{name.replace('_', '-')}: there is no file {path}")
    return _serve(args, models)


def _serve(args: argparse.Namespace, models: dict[str, Any]) -> int:
    from varifold.serve import server
    from varifold.serve.alerts import AlertRules
    from varifold.serve.core.models import Policy
    from varifold.serve.core.state import Limits
    from varifold.serve.http.app import BodyLimits

    above, by_model = args.alert_error or (None, {})
    return server.serve(
        server.Settings(
            args.dir,
            host=args.host,
            port=args.port,
            token_file=args.token_file,
            tls=None if args.tls_cert is None else (args.tls_cert, args.tls_key),
            policy=Policy(args.fsync, args.snapshot_every),
            limits=Limits(args.max_waiting, int(args.max_wait * 3_600_000), args.max_ids, labels=args.max_labels),
            bodies=BodyLimits(args.max_body, args.max_batch),
            alerts=AlertRules(above, by_model, webhook=args.alert_webhook, command=args.alert_command),
            topics=_topics(args),
            kafka=_kafka(args),
            models=models,
            log=args.log,
            drain=args.drain,
            connections=args.max_connections,
            memory=args.max_memory,
            model_memory=args.max_model_memory,
        )
    )


def _models(tables: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """Return the models to make, of the tables [models.NAME] of a configuration."""
    from varifold.errors import VarifoldError
    from varifold.serve.core.models import ModelDescription, check_name

    for name in tables:
        if name != "models":
            raise ParameterError(f"{path}: there is no table [{name}]; models are tables such as [models.plant]")
    models = {}
    for name, table in tables.get("models", {}).items():
        try:
            check_name(name)
            models[name] = ModelDescription.from_json(table)
        except VarifoldError as error:
            raise ParameterError(f"{path}: [models.{name}]: {error}") from error
    return models


def _check(folder: Path) -> int:
    """Print the state of a folder; return 1 if anything is wrong with it."""
    from varifold.serve.core.check import check_folder
    from varifold.serve.core.state import Limits

    lines, sound = check_folder(folder, Limits())
    for line in lines:
        print(line)
    return 0 if sound else 1


def _kafka(args: argparse.Namespace) -> Any:
    if args.kafka is None:
        given = next((name for name in ("readings", "labels", "predictions") if getattr(args, f"kafka_{name}")), None)
        if given:
            raise ParameterError(f"--kafka-{given} needs --kafka HOST:PORT")
        return None
    if args.kafka_readings is None:
        raise ParameterError("--kafka needs --kafka-readings TOPIC")
    from varifold.serve.kafka import KafkaTopics, read_properties

    topics = KafkaTopics(
        args.kafka,
        args.kafka_readings,
        args.kafka_labels,
        args.kafka_predictions,
        args.kafka_model,
        args.kafka_method,
        keyed=args.kafka_keyed,
        rules=args.kafka_input,
        start=args.kafka_from,
        properties=read_properties(args.kafka_config) if args.kafka_config else {},
    )
    topics.check()
    return topics


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
        rules=args.mqtt_input,
        tls=args.mqtt_tls or args.mqtt_ca is not None,
        ca=args.mqtt_ca,
        version=args.mqtt_version,
    )
