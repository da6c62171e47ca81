"""A small S3 server on a local port: enough for pyarrow and obstore, with or without conditional puts.

Signatures are not checked, uploads in parts are kept until they are complete, and listings come in one page.
"""

import io
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ETAG = '"0"'


def chunks(sent: BinaryIO) -> Iterator[bytes]:
    """Chunks, each behind a line with its size; a chunk of AWS has a signature there, and trailers follow."""
    while size := int(sent.readline().split(b";")[0] or b"0", 16):
        yield sent.read(size)
        sent.readline()
    while sent.readline().strip():
        pass


class S3Server(ThreadingHTTPServer):
    """Objects by bucket and key. `conditional=False` ignores If-None-Match, as some servers do."""

    daemon_threads = True

    def __init__(self, *, conditional: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.conditional = conditional
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.refused_puts = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def uri(self, path: str) -> str:
        return f"s3://key:secret@{path}?endpoint_override=127.0.0.1:{self.server_port}&scheme=http&region=eu-west-1"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet: otherwise the client's kernel waits 40 ms for the rest
    server: S3Server

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        self.send_header("ETag", ETAG)
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def parsed(self) -> tuple[str, dict[str, str], bytes]:
        """The object's bucket/key, the query, the body."""
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query, keep_blank_values=True).items()}
        return unquote(address.path).lstrip("/"), query, self.body()

    def body(self) -> bytes:
        """What was sent, in chunks of HTTP, of AWS, of both, or as it is."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            sent = io.BytesIO(b"".join(chunks(self.rfile)))
        else:
            sent = io.BytesIO(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        is_aws = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return b"".join(chunks(sent)) if is_aws else sent.getvalue()

    def do_PUT(self) -> None:
        name, query, body = self.parsed()
        source = unquote(self.headers.get("x-amz-copy-source", "")).lstrip("/")
        with self.server.lock:
            if source and source not in self.server.objects:
                return self.fail(404, "NoSuchKey")
            if source:
                self.server.objects[name] = self.server.objects[source]
                return self.answer(
                    200, f"<CopyObjectResult><ETag>{escape(ETAG)}</ETag></CopyObjectResult>".encode()
                )
            if "partNumber" in query:
                self.server.parts[query["uploadId"]][int(query["partNumber"])] = body
            elif (
                self.server.conditional
                and self.headers.get("If-None-Match") == "*"
                and name in self.server.objects
            ):
                self.server.refused_puts += 1
                return self.fail(412, "PreconditionFailed")
            else:
                self.server.objects[name] = body
        return self.answer(200)

    def do_POST(self) -> None:
        name, query, body = self.parsed()
        with self.server.lock:
            if "uploads" in query:
                upload = uuid.uuid4().hex
                self.server.parts[upload] = {}
                return self.answer(200, f"<Upload><UploadId>{upload}</UploadId></Upload>".encode())
            if "delete" in query:
                bucket = name.split("/")[0]
                for part in body.decode().split("<Key>")[1:]:
                    self.server.objects.pop(f"{bucket}/{part.split('</Key>')[0]}", None)
                return self.answer(200, b"<DeleteResult></DeleteResult>")
            parts = self.server.parts.pop(query["uploadId"])
            self.server.objects[name] = b"".join(parts[number] for number in sorted(parts))
        text = f"<CompleteMultipartUploadResult><ETag>{escape(ETAG)}</ETag></CompleteMultipartUploadResult>"
        return self.answer(200, text.encode())

    def do_HEAD(self) -> None:
        name, _, _ = self.parsed()
        with self.server.lock:
            if "/" not in name.rstrip("/"):
                return self.answer(200, x_amz_bucket_region="eu-west-1")
            if name not in self.server.objects:
                return self.answer(404)
            return self.answer(200, length=str(len(self.server.objects[name])))

    def do_GET(self) -> None:
        name, query, _ = self.parsed()
        with self.server.lock:
            if "/" not in name.rstrip("/"):
                return self.answer(200, self._listing(name.rstrip("/"), query).encode())
            if name not in self.server.objects:
                return self.fail(404, "NoSuchKey")
            body = self.server.objects[name]
        wanted = self.headers.get("Range")
        if wanted is None:
            return self.answer(200, body)
        first, last = wanted.removeprefix("bytes=").split("-")
        part = body[int(first) : int(last) + 1]
        return self.answer(206, part, Content_Range=f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}")

    def do_DELETE(self) -> None:
        name, _, _ = self.parsed()
        with self.server.lock:
            self.server.objects.pop(name, None)
        self.answer(204)

    def _listing(self, bucket: str, query: dict[str, str]) -> str:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        contents, folders = [], set()
        for name, body in sorted(self.server.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/") or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                contents.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size><ETag>{escape(ETAG)}</ETag>"
                    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                )
        shown = "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)
        )
        return (
            f"<ListBucketResult><Name>{bucket}</Name><KeyCount>{len(contents) + len(folders)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{''.join(contents)}{shown}</ListBucketResult>"
        )
