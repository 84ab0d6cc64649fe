"""Puts the patches in place, once a process."""

from dapr_runners.crewai import (
    _cache,
    _clocks,
    _flows,
    _forks,
    _gate,
    _human,
    _proxies,
    _stores,
    _uses,
)

for _part in (_proxies, _uses, _gate, _forks, _clocks, _cache, _human, _stores, _flows):
    _part.install()
