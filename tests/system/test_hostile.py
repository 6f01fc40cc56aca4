# SPDX-License-Identifier: Apache-2.0
"""Peers that answer garbage, stale and replayed messages, huge frames, thousands of connections, or do
not read what they are sent: the run goes on and counts nothing twice."""
import contextlib
import random
import resource
import socket
import struct
import time

import harness
import test_remote
import zmtp
from harness import HOST, study_text


WINDOW = 8  # HO_FLOW_CHUNKS


class Hostile(harness.SystemTest):
    coordinator = test_remote.Remote.coordinator
    worker = test_remote.Remote.worker
    assertRan = test_remote.Remote.assertRan

    def start_study(self, trials=4, **keys):
        self.write(study_text(trials=trials, **keys))
        return self.coordinator()

    def leave_at_the_end(self, dealer, run, trials):
        """A run that has ended waits a while for workers that do not leave."""
        self.until(lambda: run.poll() is not None or
                   self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") == trials, "the end")
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            dealer.send("bye", reason="done")

    def test_garbage_is_refused_and_the_run_goes_on(self):
        run, port = self.start_study()
        rubbish = random.Random(1)
        shapes = [b"", b"\0", b"{", b"[]", b"null", b"{}", b'{"v":2}', b'{"v":2,"type":"nonsense"}',
                  b'{"v":2,"type":"study"}', b'{"v":"1","type":"hello"}', b'{"v":2,"type":"result","trial":"0"}',
                  b"[" * 100_000, b'{"a":' * 5_000, b'{"v":2,"type":"hello","pid":"99999999999999999999"}',
                  b'{"v":2,"type":"report","trial":"-1","attempt":0}', b"\xff\xfe" * 100,
                  b'{"v":2,"type":"want","sha256":"../../etc/passwd","offset":"0"}']
        for round in range(3):
            dealer = zmtp.Dealer(port)
            for shape in shapes:
                dealer.send_frames(shape)
            for _ in range(50):
                dealer.send_frames(*[rubbish.randbytes(rubbish.randrange(300)) for _ in range(rubbish.randrange(1, 6))])
            dealer.send_frames(*[b"x"] * 300)
            # each offence of a stranger is answered; what a closed connection sent is not read. The first
            # connection is refused after 20, one more from its address after one
            for _ in range(1 if round else 20):
                dealer.wait_for("refuse")
            dealer.close()
        self.worker(port)
        self.assertRan(run, 4)
        self.assertIn("bad message", self.log())
        self.assertIn("refused from now on", self.log())
        self.assertEqual(self.log().count("bad message"), 20 + 2, "an offender has its patience back")

    def test_another_protocol_version_is_refused_with_both_versions(self):
        run, port = self.start_study(trials=1)
        for version in (1, 99):  # an older release, a newer one
            dealer = zmtp.Dealer(port)
            dealer.hello(v=version)
            reason = dealer.wait_for("refuse")["reason"]
            self.assertIn(f"protocol version {version},", reason)
            self.assertIn(f"this program {zmtp.VERSION}:", reason)
            dealer.close()
        self.worker(port)
        self.assertRan(run, 1)

    def test_an_announced_frame_of_a_gigabyte_ends_the_connection(self):
        run, port = self.start_study()
        for size in (1 << 30, 1 << 21, (1 << 63) - 1):
            dealer = zmtp.Dealer(port)
            dealer.socket.sendall(bytes([2]) + struct.pack(">Q", size) + b"x" * 1000)
            with self.assertRaises((EOFError, ConnectionError)):
                while True:
                    dealer.read(1)
            dealer.close()
        raw = zmtp.Dealer(port, greet=False)  # not ZMTP at all
        raw.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        self.worker(port)
        self.assertRan(run, 4)

    def test_stale_and_replayed_messages_change_nothing(self):
        run, port = self.start_study(trials=6, epochs=30)
        self.worker(port)
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 1, "a trial", run)
        for study in ("another", self.one("SELECT uuid FROM study")):
            dealer = zmtp.Dealer(port)
            dealer.hello(uuid="e" * 32, study=study, held=[{"trial": "0", "attempt": 1, "epoch": 1, "finished": True},
                                                           {"trial": "5000", "attempt": 1, "epoch": 1, "finished": False}])
            self.assertEqual(dealer.wait_for("drop")["trial"], "0")
            self.assertEqual(dealer.wait_for("drop")["trial"], "5000")
        before = self.query("SELECT number, state, finished_ns FROM trial WHERE number = 0")
        for attempt in (1, 1, 1, 2):
            dealer.send("fail", trial="0", attempt=attempt, **{"class": 1}, retryable=False, lane=-1, fold=-1, seed=-1,
                        epoch=1, update="-1", reason="replayed")
        for trial in ("0", "3", "77", "9223372036854775807"):
            dealer.send("result", trial=trial, attempt=1, epochs=1, experiences="1", updates="1", train_s=1.0, value=[],
                        window_count=0)
        self.leave_at_the_end(dealer, run, 6)
        self.assertRan(run, 6)
        self.assertEqual(self.query("SELECT number, state, finished_ns FROM trial WHERE number = 0"), before)
        self.assertEqual(self.one("SELECT count(*) FROM trial_value"), 6)

    def test_a_worker_that_takes_trials_and_never_answers_loses_them(self):
        run, port = self.start_study(trials=6, ping=0.2, silence=1, attempts=100)
        dealer = zmtp.Dealer(port)
        dealer.hello(uuid="e" * 32)
        dealer.wait_for("study")
        dealer.be_ready(slots=2)
        dealer.wait_for("trials")
        self.worker(port)
        self.assertRan(run, 6)
        self.assertGreaterEqual(self.one("SELECT count(*) FROM event WHERE kind = 'lost'"), 1)

    def test_a_worker_given_up_for_its_silence_may_speak_again(self):
        run, port = self.start_study(trials=4, ping=0.2, silence=1, attempts=100)
        dealer = zmtp.Dealer(port)
        dealer.hello(uuid="e" * 32)
        dealer.wait_for("study")
        dealer.be_ready(slots=1)
        dealer.wait_for("trials")
        self.until(lambda: self.one("SELECT count(*) FROM event WHERE kind = 'lost'") >= 1, "it is given up", run)
        time.sleep(3)  # longer than a connection without a hello is remembered
        dealer.be_ready(slots=1)  # on the connection it had: no hello is due
        dealer.wait_for("trials")
        self.assertIn("worker is back", self.log())
        dealer.close()
        self.worker(port)
        self.assertRan(run, 4)

    def test_a_worker_that_does_not_read_holds_nobody_up(self):
        run, port = self.start_study(trials=6)
        dealer = zmtp.Dealer(port)
        dealer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        dealer.hello(uuid="e" * 32)
        sha = "0" * 64
        for _ in range(200):  # each answered by an offence, until it is refused
            dealer.send("want", sha256=sha, offset="0")
        self.worker(port)
        self.assertRan(run, 6)

    def test_it_asks_for_the_data_again_and_again_without_reading(self):
        run, port = self.start_study(trials=6)
        dealer = zmtp.Dealer(port)
        dealer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        dealer.hello(uuid="e" * 32)
        study, _ = dealer.receive()
        for _ in range(500):
            dealer.send("want", sha256=study["file"][0]["sha256"], offset="0")
        self.worker(port)
        self.leave_at_the_end(dealer, run, 6)
        self.assertRan(run, 6)

    def test_a_peer_that_answers_no_chunk_gets_one_window_of_them(self):
        data = self.dir / "long.csv"
        data.write_text(harness.DATA.read_text() + "\n" * 9_000_000)
        self.write(study_text(trials=2, data="long.csv", ping=0.2))
        run, port = self.coordinator()
        dealer = zmtp.Dealer(port)
        dealer.hello(uuid="e" * 32)
        study, _ = dealer.receive()
        sha, whole = study["file"][0]["sha256"], data.read_bytes()
        got, tickets = b"", []

        def take(name):
            """What comes until `name`; chunks must follow each other."""
            nonlocal got
            while True:
                message, frames = dealer.receive()
                if message["type"] == "chunk":
                    self.assertEqual(int(message["offset"]), len(got))
                    tickets.append(message["ticket"])
                    got += frames[0]
                if message["type"] == name:
                    return

        dealer.send("want", sha256=sha, offset="0")
        for _ in range(WINDOW):
            take("chunk")
        for offset in (0, 0, 1, len(got), len(whole)):  # it would begin anew, and queue more
            dealer.send("want", sha256=sha, offset=str(offset))
        for ticket in (0, 1, 2**64 - 1):  # none that it was given
            dealer.send("got", ticket=str(ticket))
        for _ in range(10):
            take("ping")
        self.assertEqual(len(tickets), WINDOW, "chunks that nobody answered")
        while len(got) < len(whole):  # an honest reader has all of it, each byte once
            for ticket in tickets[-WINDOW:]:
                dealer.send("got", ticket=ticket)
            take("chunk")
        self.assertEqual(got, whole)
        self.assertEqual(self.log().count("file wanted"), 1)
        dealer.send("bye", reason="done")
        self.worker(port)
        self.assertRan(run, 2)

    def test_artifacts_with_evil_names_write_nothing_outside(self):
        run, port = self.start_study(trials=3, epochs=30)
        dealer = zmtp.Dealer(port)
        dealer.hello(uuid="e" * 32)
        dealer.wait_for("study")
        dealer.be_ready(slots=1)
        order = dealer.wait_for("trials")["order"][0]
        for name in ("../evil", "/tmp/evil", "..", ".hidden", "a/b", "a\\b", "x" * 400):
            dealer.send("chunk", b"evil", trial=order["trial"], attempt=order["attempt"], name=name, **{"kind": 2},
                        sha256="0" * 64, offset="0", total="4", ticket="1")
        dealer.send("bye", reason="done")
        self.worker(port)
        self.assertRan(run, 3)
        found = [p.name for p in self.dir.rglob("*") if "evil" in p.name or p.name.startswith(".")]
        self.assertEqual(found, [])

    def test_thousands_of_connections_do_not_stop_the_run(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        count = min(10_000, hard - 200)
        if count < 500:
            self.skipTest(f"only {hard} open files are allowed")
        run, port = self.start_study(trials=4)
        crowd = []
        for i in range(count):
            try:
                s = socket.create_connection((HOST, port), 30)
            except OSError:
                continue
            s.sendall(zmtp.GREETING + (zmtp.ready() if i % 2 else b""))
            crowd.append(s)
        self.worker(port)
        self.assertRan(run, 4)
        for s in crowd:
            s.close()


if __name__ == "__main__":
    harness.main()
