"""`cellblock mcp`: sessions for the clients of the Model Context Protocol, on stdio or HTTP."""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from cellblock.cli import options
from cellblock.cli.exits import DONE, Unusable
from cellblock.cli.terminal import say
from cellblock.errors import CellblockError, IsolationUnavailable
from cellblock.hosting.unique import unique_word
from cellblock.store import open_store
from cellblock.store.naming import checked_name

if TYPE_CHECKING:
    from cellblock.integrations.mcp import SessionServer

_TOKEN = "CELLBLOCK_MCP_TOKEN"  # noqa: S105 - where the token is, not the token
_OUTPUT_BYTES = 10_000


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "mcp",
        description=(
            "A server of the Model Context Protocol: clients run Python, commands and files in sessions that last. "
            "It speaks with the one client at stdin and stdout, or over HTTP with all who have a token."
        ),
        epilog=(
            f"The token is that of --token-file, of ${_TOKEN}, or one that is made and printed. A token file has one "
            "line for each user: USER TOKEN, or TOKEN for the user of --user. exit status: 0 done, 2 usage"
        ),
    )
    add = parser.add_argument
    add("--http", metavar="HOST:PORT", help="serve streamable HTTP there, at /mcp; 127.0.0.1:8000 say")
    add("--token-file", metavar="FILE", help="who may ask over HTTP; a file that only you may read")
    add("--allow-host", action="append", default=[], metavar="NAME", help="a name that HTTP requests may come by")
    add("--allow-origin", action="append", default=[], metavar="URL", help="a site whose pages may ask, https://… say")
    add("--store", type=options.store_url, metavar="URL", help="where sessions are kept ($CELLBLOCK_STORE, else yours)")
    add("--user", default="default", help="whose sessions (default)")
    add("--session", metavar="NAME", help="the one that is meant where a call names none (on stdio, a new one)")
    add("--most", type=options.whole(10_000), default=16, metavar="N", help="sessions open at once, of all users (16)")
    add("--idle", type=options.seconds, default=600.0, metavar="S", help="seconds after which one sleeps (600)")
    add("--tools", type=options.words, metavar="A,B", help="offer these tools alone")
    options.add_session(parser, str(_OUTPUT_BYTES), files=False)
    parser.set_defaults(command=serve)


def serve(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves, or until a signal ends us."""
    import anyio

    session = options.session(arguments, _OUTPUT_BYTES)
    session["network"] = session["network"] or None  # else what is stored
    tokens = _tokens(arguments) if arguments.http else {}
    name = arguments.session
    if name is None and not arguments.http:  # a process for each conversation, as clients start them
        name = f"mcp-{unique_word(4)}"

    async def run() -> None:
        from cellblock.integrations.mcp import open_server, serve_stdio

        async with open_server(
            arguments.store, user=arguments.user, session=name, most_open=arguments.most, idle_seconds=arguments.idle,
            tools=arguments.tools, **session,
        ) as server:  # fmt: skip
            await (_http(server, arguments, tokens) if arguments.http else serve_stdio(server))

    try:
        open_store(arguments.store).close()  # what is wrong with it is told now, and to no client
        for what, given in (("user", arguments.user), ("session", name)):
            if given is not None:
                checked_name(given, what)
        anyio.run(run)
    except (ValueError, CellblockError) as error:
        if isinstance(error, IsolationUnavailable):
            raise
        raise Unusable(str(error)) from None
    return DONE


async def _http(server: SessionServer, arguments: argparse.Namespace, tokens: dict[str, str]) -> None:
    from cellblock.integrations.mcp import listen, serve_http

    made = not tokens
    if made:
        tokens = {arguments.user: unique_word(32)}
    with listen(arguments.http) as listener:
        address: tuple[str, int] = listener.getsockname()[:2]
        host, port = address
        shown = f"[{host}]" if ":" in host else host
        say(f"serving http://{shown}:{port}/mcp")
        if made:
            say(f"the token is {tokens[arguments.user]}")
        await serve_http(server, listener, tokens, hosts=arguments.allow_host, origins=arguments.allow_origin)


def _tokens(arguments: argparse.Namespace) -> dict[str, str]:
    """Tokens by user; none where neither a file nor a variable has one."""
    if not arguments.token_file:
        return {arguments.user: os.environ[_TOKEN]} if os.environ.get(_TOKEN) else {}
    path = Path(arguments.token_file)
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unusable(f"--token-file {str(path)!r} can be read by others: chmod 600 it")
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"--token-file {str(path)!r} cannot be read: {error}") from None
    tokens: dict[str, str] = {}
    for number, words in enumerate(lines, 1):
        if not words or words[0].startswith("#"):
            continue
        user, token = words if len(words) == 2 else (arguments.user, words[0])
        if len(words) > 2 or user in tokens or token in tokens.values():
            raise Unusable(f"--token-file, line {number}: each user has one line, USER TOKEN, and a token apart")
        tokens[user] = token
    if not tokens:
        raise Unusable(f"--token-file {str(path)!r} holds no token")
    return tokens
