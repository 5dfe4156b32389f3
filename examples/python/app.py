"""A welcome mail three days after the sign-up, on nothing but Python's standard library. See ../README.md.

The packages `qstash`, `upstash-redis` and `upstash-workflow` do the same in fewer lines.
"""

import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

PORT = int(os.environ.get("PORT", "3000"))
URL = os.environ.get("APP_URL", f"http://localhost:{PORT}")


def call(url, token, body, **headers):
    """Sends one request and returns the JSON of its response."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **names}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)


def publish(url, body, **settings):
    """Publishes a message, for example with `Upstash_Delay="3d"`."""
    queue = os.environ["QSTASH_URL"]
    return call(f"{queue}/v2/publish/{url}", os.environ["QSTASH_TOKEN"], body, **settings)


def redis(*command):
    """Runs one command on the database."""
    reply = call(os.environ["UPSTASH_REDIS_REST_URL"], os.environ["UPSTASH_REDIS_REST_TOKEN"], command)
    return reply["result"]


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_genuine(token, body, url):
    """Whether a signature (a JSON Web Token) is Homeport's, is for this URL and these bytes, and has not expired."""
    try:
        signed, signature = token.rsplit(".", 1)
        head, payload = (json.loads(decoded(part)) for part in signed.split("."))
        given = decoded(signature)
        claimed = decoded(payload["body"])
    except (ValueError, KeyError):
        return False
    keys = (os.environ["QSTASH_CURRENT_SIGNING_KEY"], os.environ["QSTASH_NEXT_SIGNING_KEY"])
    expected = [hmac.digest(key.encode(), signed.encode(), "sha256") for key in keys]
    return (
        head.get("alg") == "HS256"
        and any([hmac.compare_digest(given, each) for each in expected])
        and hmac.compare_digest(claimed, hashlib.sha256(body).digest())
        and payload.get("iss") == "Upstash"
        and payload.get("sub") == url
        and payload.get("exp", 0) > time.time()
    )


class App(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/signup":
            email = json.loads(body)["email"]
            redis("SADD", "users", email)
            self.answer(200, publish(f"{URL}/mail", {"to": email}, Upstash_Delay="3d"))
        elif self.path == "/mail":
            if not is_genuine(self.headers.get("Upstash-Signature", ""), body, f"{URL}/mail"):
                return self.answer(401, "wrong signature")
            redis("RPUSH", "sent", json.loads(body)["to"])
            self.answer(200, "sent")
        else:
            self.answer(404, "not found")

    def do_GET(self):
        if self.path == "/sent":
            self.answer(200, redis("LRANGE", "sent", 0, -1))
        else:
            self.answer(404, "not found")

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", PORT), App)
    print(f"serving on {URL}", flush=True)
    server.serve_forever()
