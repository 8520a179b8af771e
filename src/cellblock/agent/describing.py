"""A run's description for its log, written before it begins: all that it takes to do it again, as far as a log can
hold it."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Mapping

from cellblock.agent.recording import TOO_LARGE as TOO_LARGE
from cellblock.agent.recording import to_plain
from cellblock.agent.workplace import Workplace
from cellblock.container import Container, default_image
from cellblock.network import destinations
from cellblock.observe.redaction import BYTES
from cellblock.policy import Policy
from cellblock.session.tools import describe
from cellblock.tools.tool import about

_MOST_BYTES = 512 * 1024
"""Most bytes that a log keeps of all inputs of a run, and as much of its files."""


def workplace_told(workplace: Workplace) -> dict[str, object]:
    """Description of the place a run works in: its session's arguments and limits, and what is registered."""
    options, registry = workplace.options, workplace.registry
    return {
        "name": workplace.name,
        "user": options["user"],
        "state": None if workplace.state is None else type(workplace.state).__name__,
        "trust_level": options["trust_level"],
        "walls": options["walls"] or "full",
        "image": _image_told(options["trust_level"], options["container"]),
        "limits": {name: getattr(workplace.limits, name) for name in workplace.limits.__slots__},
        "seed": options["seed"],
        "preload": options["preload"],
        "mounts": sorted(options["mounts"] or ()),
        "network": [str(one) for one in destinations(options["network"] or ())],
        "policy": _policy_told(registry.policy),
        "tools": [{**describe(one.__name__, one), "outward": about(one).outward} for one in registry.tools],
        "classes": sorted(registry.classes),
    }


def inputs_told(inputs: Mapping[str, object]) -> dict[str, object]:
    """Inputs by name, in the forms that a log keeps of values."""
    left = _MOST_BYTES
    told: dict[str, object] = {}
    for name, value in inputs.items():
        told[name] = to_plain(value, most=left)
        left = max(left - len(str(told[name])), 0)
    return told


def files_told(files: Mapping[str, bytes]) -> dict[str, object]:
    """Files by path: size, digest, and what is in them where that is not too much."""
    left = _MOST_BYTES
    told: dict[str, object] = {}
    for path, content in files.items():
        kept = len(content) <= left
        left -= len(content) if kept else 0
        told[path] = {"bytes": len(content), "sha256": digest(content), **(_content(content) if kept else {})}
    return told


def _content(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": BYTES + base64.b64encode(content).decode()}


def digest(content: bytes) -> str:
    """By which the content of a file is known again."""
    return hashlib.sha256(content).hexdigest()


def python_told() -> str:
    """The interpreter's version."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def _image_told(trust_level: str, container: Container | str | None) -> str | None:
    """Of which image the container is that a run was in."""
    if trust_level != "sandboxed":
        return None
    return (container.image if isinstance(container, Container) else container) or default_image()


def _policy_told(policy: Policy | None) -> dict[str, object] | None:
    """A policy as data; objects of the host that it grants are given by name only."""
    if policy is None:
        return None
    return {
        "modules": None if policy.modules is None else list(policy.modules),
        "trusted": list(policy.trusted),
        "without": sorted(policy.without),
        "also": sorted(policy.also),
        "format_index": policy.format_index,
        "functions": [grant.name for grant in policy.functions],
        "classes": [grant.name for grant in policy.classes],
        "granted": [grant.name for grant in policy.granted],
    }
