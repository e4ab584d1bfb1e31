"""Owns the server that the schema test starts, plain HTTP requests to it, and a WebSocket client for its worker channel."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse

PATIENCE_S = 60  # under sanitizers, on a busy machine


class Server:
    """orbitd over a fresh data directory, with a credential for everything about tasks, one for admin, and the root one."""

    def __init__(self, programs):
        self.programs, self.process, self.tokens = programs, None, {}

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="orbit-schema-")
        try:
            self.make()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.directory, name)

    def run(self, program, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("ORBIT_", "XDG_", "LISTEN_", "NOTIFY_"))}
        return [os.path.join(self.programs, program), *arguments], environment

    def make(self):
        command, environment = self.run("orbitctl", "init", "--data", self.file("data"), "--dev", "--recovery-access",
                                        "--credentials", self.file("dev"), "--admin-credentials", self.file("admin"),
                                        "--root-credentials", self.file("root"))
        subprocess.run(command, env=environment, check=True, capture_output=True)
        for name in ("dev", "admin", "root"):
            with open(self.file(name), encoding="utf-8") as file:
                credentials = json.load(file)
            self.tokens[name] = credentials["token"]
            if name == "dev":
                self.queue_id, self.application_id = credentials["queue_id"], credentials["application_id"]

    def start(self):
        command, environment = self.run("orbitd", "--data", self.file("data"), "--listen", "127.0.0.1:0", "--worker-listen",
                                        "127.0.0.1:0", "--log-format", "json")
        with open(self.file("log"), "wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=log)
        until = time.monotonic() + PATIENCE_S
        while (ready := self.ready_line()) is None:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("orbitd is not ready: " + self.log_text())
            time.sleep(0.01)
        self.address, self.worker_url = ready["listen"], ready["worker_url"]

    def log_text(self):
        with open(self.file("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def ready_line(self):
        for line in self.log_text().splitlines(keepends=True):
            if line.endswith("\n") and line.startswith("{") and json.loads(line).get("message") == "ready":
                return json.loads(line)
        return None

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        return self.process.wait(PATIENCE_S)

    def request(self, method, target, body, headers, raw):
        """Status, headers and text of the answer. raw: the body's bytes, sent without a header about their length."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            data = raw if raw is not None else None if body is None else json.dumps(body).encode()
            if raw is None and data is not None:
                connection.putheader("Content-Length", str(len(data)))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()


class Channel:
    """One connection of a worker. kept: what has come and nobody has asked for yet."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        self.kept, self.buffer = [], b""
        self.socket = socket.create_connection((parts.hostname, parts.port), PATIENCE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                             f"Sec-WebSocket-Protocol: orbit.worker.v1\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.more("the answer to the upgrade")
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 101 "):
            raise RuntimeError("the worker channel answers " + head.decode())

    def more(self, what):
        try:
            data = self.socket.recv(65536)
        except socket.timeout:
            raise RuntimeError(f"{what} does not come; there are {self.kept}") from None
        if not data:
            raise RuntimeError(f"the connection has ended before {what} came")
        self.buffer += data

    def take(self, count, what):
        while len(self.buffer) < count:
            self.more(what)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send_frame(self, opcode, data):
        mask = os.urandom(4)
        length = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xFE, len(data))
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | opcode]) + length + mask + body)

    def send_text(self, text):
        self.send_frame(1, text.encode())

    def send(self, message):
        self.send_text(json.dumps(message))

    def receive(self, what):
        """The messages of the next frame; pings are answered on the way."""
        text = b""
        while True:
            first, second = self.take(2, what)
            length = second & 0x7F
            if length >= 126:
                length = int.from_bytes(self.take(2 if length == 126 else 8, what), "big")
            data, opcode = self.take(length, what), first & 0x0F
            if opcode == 9:
                self.send_frame(10, data)
            elif opcode == 8:
                raise RuntimeError(f"the server has closed with {data!r} before {what} came")
            elif opcode in (0, 1):
                text += data
                if first & 0x80:
                    messages = json.loads(text)
                    return messages if isinstance(messages, list) else [messages]

    def close(self):
        self.socket.close()
