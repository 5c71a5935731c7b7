"""Durable state of named models: store, snapshots, recovery, waiting instances. No framework, no network."""
