"""How the settings are come by: from defaults, a TOML file, the environment and flags to one frozen `Settings`.

Lives here: the folders of this user (`places`), one value from text or TOML (`values`), what values must not do
together (`checks`), and the order of the sources (`resolve`). May import: msgspec, platformdirs, `termald.settings`.
Keeps: every value has one source that is told; a value is taken, refused or reported, never lost; all but `load` and
`find_places` is pure.
Begin at `resolve.py`. Not here: what there is to set (`termald/settings.py`) and the numbers (`termald/limits.py`).
"""
