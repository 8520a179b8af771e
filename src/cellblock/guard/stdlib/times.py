"""Audits of modules about times."""

from __future__ import annotations

from cellblock.guard.tables import ModuleAudit

AUDITS: tuple[ModuleAudit, ...] = ()
