"""The message types of Codex's app-server: `types` (structs), `methods` (which method carries which).

Generated from Codex's own schema by `make protocol`; never edited.
Imported by `codex` alone: wire names stop at `translate`.
"""
