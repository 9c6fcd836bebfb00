"""A small S3 in this process, for tests: buckets in memory, on a port of 127.0.0.1, that pyarrow talks to.

It knows what openset needs of the protocol: objects (whole and by range), listing, uploads in pieces, and the
errors for a bucket that is missing or refused. moto needs botocore, which needs an older dateutil than ours.
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class Store:
    """Buckets of objects by key, uploads that are not finished, and buckets that refuse.

    A bucket that may not be looked at refuses that alone, as where a user is allowed a folder of it.
    """

    def __init__(self, *buckets):
        self.buckets = {bucket: {} for bucket in buckets}
        self.times = {}
        self.uploads = {}
        self.refused = set()
        self.not_looked_at = set()
        self.fetched = []
        self.lock = threading.Lock()

    def put(self, bucket, key, content):
        with self.lock:
            self.buckets[bucket][key] = content
            self.times[bucket, key] = self.times.get((bucket, key), 1_700_000_000) + 1


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def _answer(self):
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        body = self._body()
        if bucket in self.store.refused:
            return self._error(403, "AccessDenied")
        if bucket not in self.store.buckets:
            return self._error(404, "NoSuchBucket")
        objects = self.store.buckets[bucket]
        if not key and self.command == "HEAD" and bucket in self.store.not_looked_at:
            return self._error(403, "AccessDenied")
        if not key:
            return self._send(200) if self.command == "HEAD" else self._list(bucket, objects, query)
        if self.command == "PUT":
            return self._put(bucket, key, query, body)
        if self.command == "POST":
            return self._post(bucket, key, query, body)
        if self.command == "DELETE":
            self.store.buckets[bucket].pop(key, None)
            return self._send(204)
        if key not in objects:
            return self._error(404, "NoSuchKey")
        return self._object(bucket, key, objects[key])

    def _body(self):
        coding = self.headers.get("Transfer-Encoding", "")
        if self.headers.get("x-amz-decoded-content-length") or "chunked" in coding:
            return self._chunks()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self):
        """Content that comes in chunks, each after a line with its length; HTTP's or those of S3."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.headers.get("x-amz-decoded-content-length"):
            return raw
        content = b""
        while raw:
            line, _, raw = raw.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            content, raw = content + raw[:size], raw[size + 2 :]
        return content

    def _put(self, bucket, key, query, body):
        if "uploadId" in query:
            self.store.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.store.put(bucket, key, body)
        self._send(200, headers={"ETag": _tag(body)})

    def _post(self, bucket, key, query, body):
        if "uploads" in query:
            name = f"upload-{len(self.store.uploads)}"
            self.store.uploads[name] = {}
            content = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            return self._xml("InitiateMultipartUploadResult", content)
        assert ElementTree.fromstring(body).tag.endswith("CompleteMultipartUpload")
        pieces = self.store.uploads.pop(query["uploadId"])
        self.store.put(bucket, key, b"".join(pieces[number] for number in sorted(pieces)))
        return self._xml("CompleteMultipartUploadResult", f'<Key>{escape(key)}</Key><ETag>"x"</ETag>')

    def _list(self, bucket, objects, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        entries, folders = [], []
        for key in sorted(objects):
            if not key.startswith(prefix):
                continue
            inside = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if inside[1]:
                folders.append(prefix + inside[0] + delimiter)
                continue
            time = f"{datetime.fromtimestamp(self.store.times[bucket, key], UTC):%Y-%m-%dT%H:%M:%S}.000Z"
            entries.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key])}</Size>"
                f"<LastModified>{time}</LastModified><ETag>{escape(_tag(objects[key]))}</ETag></Contents>"
            )
        entries = entries[: int(query.get("max-keys", 1000))]
        shared = map(escape, dict.fromkeys(folders))
        common = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in shared)
        found = f"<Name>{bucket}</Name><KeyCount>{len(entries)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._xml("ListBucketResult", found + "".join(entries) + common)

    def _object(self, bucket, key, content):
        headers = {"ETag": _tag(content), "Last-Modified": formatdate(self.store.times[bucket, key], usegmt=True)}
        asked = self.headers.get("Range")
        if self.command == "HEAD":
            return self._send(200, content, headers)
        self.store.fetched.append(key)
        if asked is None:
            return self._send(200, content, headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        end = min(int(last) + 1, len(content)) if last else len(content)
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
        return self._send(206, content[int(first) : end], headers)

    def _xml(self, name, content):
        self._send(200, f'<?xml version="1.0"?><{name} {SPACE}>{content}</{name}>'.encode())

    def _error(self, status, code):
        content = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._send(status, f'<?xml version="1.0"?>{content}'.encode())

    def _send(self, status, content=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and content:
            self.wfile.write(content)


def _tag(content):
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


@contextmanager
def serving(*buckets):
    """Yield the store, and the address of a server of it."""
    store = Store(*buckets)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"store": store}))
    server.handle_error = lambda *_: None  # a client that does not wait for the answer
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
