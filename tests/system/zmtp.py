# SPDX-License-Identifier: Apache-2.0
"""A DEALER in plain Python: enough of ZMTP 3.1 (NULL mechanism, RFC 37) to send whatever a hostile or
broken worker might send. Nothing here is checked before it goes out."""
import json
import socket
import struct

from harness import HOST

VERSION = 2  # of the protocol
GREETING = b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\x01" + b"NULL".ljust(20, b"\0") + b"\0" + b"\0" * 31


def ready():
    key, value = b"Socket-Type", b"DEALER"
    body = bytes([5]) + b"READY" + bytes([len(key)]) + key + struct.pack(">I", len(value)) + value
    return bytes([4, len(body)]) + body


def frame(body, more):
    if len(body) < 256:
        return bytes([int(more), len(body)]) + body
    return bytes([2 | int(more)]) + struct.pack(">Q", len(body)) + body


class Dealer:
    def __init__(self, port, greet=True, timeout=60):
        self.socket = socket.create_connection((HOST, port), timeout)
        if greet:
            self.socket.sendall(GREETING)
            self.read(64)
            self.socket.sendall(ready())
            self.read_frame()

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def read_frame(self):
        """(flags, body)"""
        flags = self.read(1)[0]
        size = struct.unpack(">Q", self.read(8))[0] if flags & 2 else self.read(1)[0]
        return flags, self.read(size)

    def receive(self):
        """One message: its JSON and its other frames. Commands are skipped."""
        frames = []
        while True:
            flags, body = self.read_frame()
            if flags & 4:
                continue
            frames.append(body)
            if not flags & 1:
                return json.loads(frames[0]), frames[1:]

    def wait_for(self, name):
        while True:
            message, _ = self.receive()
            if message["type"] == name:
                return message

    def send_frames(self, *frames):
        self.socket.sendall(b"".join(frame(body, i + 1 < len(frames)) for i, body in enumerate(frames)))

    def send(self, kind, /, *frames, v=VERSION, **members):
        self.send_frames(json.dumps({"v": v, "type": kind, **members}).encode(), *frames)

    def hello(self, uuid="0" * 32, held=(), v=VERSION, study=""):
        self.send("hello", v=v, program="0", name="evil", uuid=uuid, study=study, token="", host="h", pid="1", lanes=8,
                  allow_command=False, device=[], cached=[], held=list(held))

    def be_ready(self, slots=4):
        self.send("ready", slots=slots, active_lanes=0, waiting_lanes=0, lanes=8, key=[])

    def close(self):
        self.socket.close()
