/** Code that verifies the signature of a request, in several languages. */
export const examples: { language: string; code: string }[] = [
	{
		language: "Node",
		code: `import { createHmac, timingSafeEqual } from "node:crypto";

// body: the raw bytes, before any parsing
export function verify(secret, headers, body, now = Date.now()) {
  const id = headers["webhook-id"] ?? "";
  const sent = headers["webhook-timestamp"] ?? "";
  if (!(Math.abs(now / 1000 - Number(sent)) < 300)) return false;
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const mac = createHmac("sha256", key).update(\`\${id}.\${sent}.\`).update(body);
  const want = Buffer.from("v1," + mac.digest("base64"));
  const given = (headers["webhook-signature"] ?? "").split(" ");
  return given.map((one) => Buffer.from(one)).some((one) =>
    one.length === want.length && timingSafeEqual(one, want));
}
`,
	},
	{
		language: "Python",
		code: `import base64, hashlib, hmac, time

# body: the raw bytes, before any parsing
def verify(secret, headers, body, now=None):
    sent = headers.get("webhook-timestamp", "")
    if not sent.isdecimal() or abs((now or time.time()) - int(sent)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers.get('webhook-id', '')}.{sent}.".encode() + body
    want = "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(one.encode(), want.encode()) for one in given)
`,
	},
	{
		language: "Go",
		code: `// body: the raw bytes, before any parsing
func verify(secret string, header http.Header, body []byte, now time.Time) bool {
	id, sent := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + sent + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, one := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(one), []byte(want)) {
			return true
		}
	}
	return false
}
`,
	},
];
