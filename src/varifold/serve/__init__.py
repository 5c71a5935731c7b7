"""A model server that learns: durable, observable, and usable from any language.

`varifold.serve.core` holds the durable state (SQLite, snapshots, recovery) without any framework;
`varifold.serve.http` and `varifold.serve.mqtt` are its interfaces. Needs the extra ``serve``.
"""
