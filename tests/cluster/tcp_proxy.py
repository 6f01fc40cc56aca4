# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy with a bad line's latency and loss, where the kernel has no tc netem. What a lost segment does
to a TCP stream is a pause of one retransmission timeout, and now and then the end of the connection.
usage: tcp_proxy.py LISTEN_HOST:PORT TARGET_HOST:PORT LATENCY_MS LOSS RESET    (LOSS, RESET: shares of the reads)"""
import asyncio
import random
import sys

RETRANSMIT_S = 0.3


async def pump(reader, writer, latency_s, loss, reset, chance):
    try:
        while data := await reader.read(16384):
            await asyncio.sleep(latency_s * chance.uniform(0.5, 1.5))
            if chance.random() < loss:
                await asyncio.sleep(RETRANSMIT_S)
            if chance.random() < reset:
                writer.transport.abort()
                return
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main():
    (host, port), (to_host, to_port) = (a.rsplit(":", 1) for a in sys.argv[1:3])
    latency_s, loss, reset = float(sys.argv[3]) / 1e3, float(sys.argv[4]), float(sys.argv[5])
    chance = random.Random(20260131)

    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer, latency_s, loss, reset, chance),
                             pump(far_reader, writer, latency_s, loss, reset, chance))

    async with await asyncio.start_server(connected, host, int(port)) as server:
        await server.serve_forever()


asyncio.run(main())
