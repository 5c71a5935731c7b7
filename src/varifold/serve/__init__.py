"""A model server that learns: durable, observable, and usable from any language.

`varifold.serve.core` holds the durable state (SQLite, snapshots, recovery) without any framework;
`varifold.serve.http`, `varifold.serve.mqtt` and `varifold.serve.kafka` are its interfaces. Needs the extra ``serve``,
and ``kafka`` for the last.
"""
