"""Audits of modules about structures."""

from __future__ import annotations

from cellblock.guard.tables import ModuleAudit

AUDITS: tuple[ModuleAudit, ...] = ()
