"""The durable state of named models: journal, snapshots, recovery, waiting instances. No framework, no network."""
