# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""slow_proxy.py PORT MS FILE: accepts connections on a free port of 127.0.0.1, prints the port, and passes all bytes to and from PORT.
While FILE exists, bytes from PORT wait for MS milliseconds, as those of a slow disk or a far host."""
import asyncio
import os
import sys

port, delay, slow = int(sys.argv[1]), int(sys.argv[2]) / 1000, sys.argv[3]


async def copy(reader, writer, waits):
    """Passes the bytes on in their order, each after its delay; bytes behind a delay do not add to it."""
    loop = asyncio.get_running_loop()
    due = 0.0
    while data := await reader.read(1 << 20):
        now = loop.time()
        due = max(due, now + delay if waits and os.path.exists(slow) else now)
        loop.call_at(due, writer.write, data)
    writer.close()


async def serve(reader, writer):
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 21)
    await asyncio.gather(copy(reader, far_writer, False), copy(far_reader, writer, True), return_exceptions=True)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 21)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
