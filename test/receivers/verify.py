# begin: verify
import base64
import hashlib
import hmac
import time


def verify(secret, headers, body, now=None):
    """Checks a delivery. The body must be the bytes as they were received."""
    sent = headers.get("webhook-timestamp", "")
    if not (sent.isascii() and sent.isdigit() and len(sent) <= 12):
        return False
    if abs((time.time() if now is None else now) - int(sent)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers.get('webhook-id', '')}.{sent}.".encode() + body
    want = b"v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(one, want) for one in given)
# end: verify
