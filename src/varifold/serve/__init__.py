"""A model server that learns: durable, observable, and usable from any language.

`varifold.serve.core` holds the durable state (journal, snapshots, recovery) without any framework;
`varifold.serve.http` and `varifold.serve.mqtt` are doors to it. Needs the extra ``serve``.
"""
