import asyncio


async def answer(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"hello\n")
    print((await reader.readline()).decode().strip())
    writer.close()
    server.close()
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0].decode().strip())
    print(await asyncio.to_thread(sum, [1, 2, 3]))


if __name__ == "__main__":
    asyncio.run(main())
