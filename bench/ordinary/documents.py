"""A round trip through JSON, and a walk over what came back."""

import json


def walk(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from walk(value, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from walk(value, f"{path}[{i}]")
    else:
        yield path, node


def clean(node):
    if isinstance(node, dict):
        return {key.lower(): clean(value) for key, value in node.items() if value is not None}
    if isinstance(node, list):
        return [clean(value) for value in node]
    return node.strip() if isinstance(node, str) else node


data = {
    "Users": [
        {"ID": i, "Name": f" user {i} ", "Mail": None if i % 3 else f"u{i}@example.org", "Tags": ["a", "b", str(i)]}
        for i in range(900)
    ]
}
back = clean(json.loads(json.dumps(data, indent=1)))
leaves = list(walk(back))
result = len(leaves), leaves[-1], sum(value for path, value in leaves if path.endswith("id")), len(json.dumps(back))
