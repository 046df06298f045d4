package signature_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/signature"
)

func mac(algorithm func() hash.Hash, key, text string) []byte {
	m := hmac.New(algorithm, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

func hexMAC(key, text string) string { return hex.EncodeToString(mac(sha256.New, key, text)) }

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// slackBody is the request that Slack's documentation verifies step by step.
const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
	"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
	"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
	"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

// validRequest is a request that its rule accepts at its time.
type validRequest struct {
	rule   signature.Rule
	at     int64
	header http.Header
	body   string
}

// documentedRequests returns the example requests of the senders' documentation,
// and for schemes without an example, requests built as documented.
func documentedRequests() map[string]validRequest {
	const at = 1_700_000_000
	stamp := strconv.FormatInt(at, 10)
	return map[string]validRequest{
		"github": {
			signature.Rule{Scheme: signature.GitHub, Secret: "It's a Secret to Everybody"}, at,
			headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"), "Hello, World!",
		},
		"slack": {
			signature.Rule{Scheme: signature.Slack, Secret: "8f742231b10e8888abcd99yyyzzz85a5"}, 1531420618,
			headers("X-Slack-Request-Timestamp", "1531420618", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"), slackBody,
		},
		"standard-webhooks": {
			signature.Rule{Scheme: signature.StandardWebhooks, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, 1614265330,
			headers("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
				"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), `{"test": 2432232314}`,
		},
		"standard-webhooks, secret without prefix, two signatures": {
			signature.Rule{Scheme: signature.StandardWebhooks, Secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, 1614265330,
			headers("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
				"webhook-signature", "v1,AAAA v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
			`{"test": 2432232314}`,
		},
		"standard-webhooks with the headers of Svix": {
			signature.Rule{Scheme: signature.StandardWebhooks, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, 1614265330,
			headers("svix-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "svix-timestamp", "1614265330",
				"svix-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), `{"test": 2432232314}`,
		},
		"stripe": {
			signature.Rule{Scheme: signature.Stripe, Secret: "whsec_test_secret"}, at,
			headers("Stripe-Signature", "t="+stamp+",v1="+hexMAC("whsec_test_secret", stamp+`.{"id":"evt_1"}`)+",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"),
			`{"id":"evt_1"}`,
		},
		"stripe during a rotation of the secret": {
			signature.Rule{Scheme: signature.Stripe, Secret: "whsec_new"}, at,
			headers("Stripe-Signature", "t="+stamp+",v1="+hexMAC("whsec_old", stamp+".{}")+",v1="+hexMAC("whsec_new", stamp+".{}")), "{}",
		},
		"hmac": {
			signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Signature"}, at, headers("X-Signature", hexMAC("s", "body")), "body",
		},
		"hmac in base64 of sha512, with a prefix": {
			signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Signature", Algorithm: "sha512", Encoding: "base64", Prefix: "v1="}, at,
			headers("X-Signature", "v1="+base64.StdEncoding.EncodeToString(mac(sha512.New, "s", "body"))), "body",
		},
		"hmac with a timestamp": {
			signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Signature", Timestamp: "X-Time"}, at,
			headers("X-Signature", hexMAC("s", stamp+".body"), "X-Time", stamp), "body",
		},
		"hmac with a timestamp in milliseconds and a template": {
			signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Signature", Timestamp: "X-Time", Signed: "v2:{X-Id}:{body}:{x-time}", Tolerance: time.Second}, at,
			headers("X-Signature", hexMAC("s", "v2:msg-17:body:"+stamp+"000"), "X-Time", stamp+"000", "X-Id", "msg-17"), "body",
		},
		"basic": {
			signature.Rule{Scheme: signature.Basic, Username: "Aladdin", Secret: "open sesame"}, at,
			headers("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "",
		},
		"bearer": {
			signature.Rule{Scheme: signature.Bearer, Secret: "mF_9.B5f-4.1JqM"}, at, headers("Authorization", "Bearer mF_9.B5f-4.1JqM"), "",
		},
		"bearer in another header": {
			signature.Rule{Scheme: signature.Bearer, Secret: "tok en", Header: "X-Gitlab-Token"}, at, headers("X-Gitlab-Token", "tok en"), "",
		},
	}
}

// The schemes that depend on more than headers and the body, with the examples of the
// senders' documentation where there are some.
func TestSchemesOfServices(t *testing.T) {
	t.Parallel()
	const (
		at   = 1_700_000_000
		form = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212"
	)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	twilio := signature.Rule{Scheme: signature.Twilio, Secret: "12345", URL: "https://mycompany.com/myapp.php?foo=1&bar=2"}
	isForm := headers("Content-Type", "application/x-www-form-urlencoded; charset=utf-8", "X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8=")
	sum := sha256.Sum256([]byte(`{"a":1}`))
	hashed := twilio
	hashed.URL += "&bodySHA256=" + hex.EncodeToString(sum[:])
	isHashed := headers("Content-Type", "application/json", "X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac(sha1.New, "12345", hashed.URL)))
	discord := signature.Rule{Scheme: signature.Ed25519, Secret: hex.EncodeToString(public), Header: "X-Signature-Ed25519", Timestamp: "X-Signature-Timestamp"}
	isDiscord := headers("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte("1700000000{}"))), "X-Signature-Timestamp", "1700000000")
	trello := signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Trello-Webhook", Algorithm: "sha1", Encoding: "base64", Signed: "{body}{url}", URL: "https://stepmill.example/x"}
	isTrello := headers("X-Trello-Webhook", base64.StdEncoding.EncodeToString(mac(sha1.New, "s", "{}https://stepmill.example/x")))
	hubspot := signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Sign", Timestamp: "X-Time", Signed: "{method}{url}{body}{x-time}", Method: "POST", URL: "https://a.example/b?c=d"}
	isHubspot := headers("X-Sign", hexMAC("s", "POSThttps://a.example/b?c=d[]1700000000"), "X-Time", "1700000000")
	for _, tc := range []struct {
		name   string
		rule   signature.Rule
		header http.Header
		body   string
		ok     bool
	}{
		{"the form of Twilio's documentation", twilio, isForm, form, true},
		{"another form", twilio, isForm, form + "&x=1", false},
		{"a form as if it were none", twilio, headers("X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="), form, false},
		{"JSON whose hash the URL has", hashed, isHashed, `{"a":1}`, true},
		{"JSON with another hash", hashed, isHashed, `{"a":2}`, false},
		{"JSON without a hash", twilio, headers("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac(sha1.New, "12345", twilio.URL))), `{"a":1}`, false},
		{"Ed25519", discord, isDiscord, "{}", true},
		{"Ed25519 of another body", discord, isDiscord, "[]", false},
		{"Ed25519 with another time", discord, headers("X-Signature-Ed25519", isDiscord.Get("X-Signature-Ed25519"), "X-Signature-Timestamp", "1700000001"), "{}", false},
		{"an old Ed25519", discord, headers("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(private, []byte("1600000000{}"))), "X-Signature-Timestamp", "1600000000"), "{}", false},
		{"a public key that is none", signature.Rule{Scheme: signature.Ed25519, Secret: "abc", Header: "X-Signature-Ed25519"}, isDiscord, "{}", false},
		{"a signature of the URL", trello, isTrello, "{}", true},
		{"a signature of another URL", signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-Trello-Webhook", Algorithm: "sha1", Encoding: "base64", Signed: "{body}{url}", URL: "https://stepmill.example/y"}, isTrello, "{}", false},
		{"a signature of the method and the URL", hubspot, isHubspot, "[]", true},
		{"what a request proves itself with", signature.Rule{Scheme: signature.Equals, Secret: "s", Given: "s"}, nil, "", true},
		{"something else", signature.Rule{Scheme: signature.Equals, Secret: "s", Given: "t"}, nil, "", false},
		{"nothing", signature.Rule{Scheme: signature.Equals, Secret: "s"}, nil, "", false},
		{"nothing where nothing is expected", signature.Rule{Scheme: signature.Equals}, nil, "", false},
	} {
		if err := tc.rule.Verify(time.Unix(at, 0), tc.header, []byte(tc.body)); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestAcceptsDocumentedRequests(t *testing.T) {
	t.Parallel()
	for name, g := range documentedRequests() {
		if err := g.rule.Verify(time.Unix(g.at, 0), g.header, []byte(g.body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Before the body is known, a request is rejected only if no body could make it
// valid.
func TestVerifiesHeadersFirst(t *testing.T) {
	t.Parallel()
	for name, g := range documentedRequests() {
		now := time.Unix(g.at, 0)
		if _, err := g.rule.Begin(now, g.header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := g.rule.Begin(now, http.Header{}); err == nil {
			t.Errorf("%s: accepted without headers", name)
		}
		if _, err := g.rule.Begin(now.Add(time.Hour), g.header); g.rule.Timed() && err == nil {
			t.Errorf("%s: accepted an hour later", name)
		}
		other := g.rule
		other.Secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret"))
		if _, err := other.Begin(now, g.header); (err == nil) != g.rule.SignsBody() {
			t.Errorf("%s: with another secret: %v", name, err)
		}
	}
}

// assertRejected asserts that a request is rejected and the error reveals no secret.
func assertRejected(t *testing.T, name string, g validRequest, at time.Time) {
	t.Helper()
	err := g.rule.Verify(at, g.header, []byte(g.body))
	if _, ok := errors.AsType[*signature.Rejection](err); !ok {
		t.Errorf("%s: got %v", name, err)
		return
	}
	if text := err.Error(); strings.Contains(text, g.rule.Secret) && g.rule.Secret != "" && len(g.rule.Secret) > 1 {
		t.Errorf("%s: the secret is in %q", name, text)
	}
	for _, values := range g.header {
		for _, value := range values {
			if len(value) > 5 && strings.Contains(err.Error(), value) {
				t.Errorf("%s: a part of the request is in %q", name, err)
			}
		}
	}
}

func TestRejectsEveryChangeToAValidRequest(t *testing.T) {
	t.Parallel()
	for name, g := range documentedRequests() {
		now := time.Unix(g.at, 0)
		other := g
		other.rule.Secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of somebody else"))
		assertRejected(t, name+": another secret", other, now)
		other.rule.Secret = ""
		assertRejected(t, name+": no secret", other, now)

		if g.rule.Scheme != signature.Basic && g.rule.Scheme != signature.Bearer {
			changed := g
			changed.body += " "
			assertRejected(t, name+": a longer body", changed, now)
			changed.body = g.body[1:]
			assertRejected(t, name+": a shorter body", changed, now)
		}
		for header, values := range g.header {
			for what, with := range map[string][]string{
				"missing": nil, "empty": {""}, "twice": {values[0], values[0]}, "cut short": {values[0][:len(values[0])-1]}, "longer": {values[0] + "0"},
				"only a prefix": {values[0][:min(3, len(values[0]))]}, "garbage": {"\x00\xff=,=, v1,"},
			} {
				// Text after the last v1 of Stripe is not checked.
				if name == "stripe" && (what == "cut short" || what == "longer") {
					continue
				}
				changed := g
				changed.header = g.header.Clone()
				changed.header[header] = with
				assertRejected(t, name+": "+header+" "+what, changed, now)
			}
		}
		for _, off := range []time.Duration{5*time.Minute + time.Second, -5*time.Minute - time.Second, 48 * time.Hour} {
			if g.rule.Timed() {
				assertRejected(t, name+": late", g, now.Add(off))
			} else if err := g.rule.Verify(now.Add(off), g.header, []byte(g.body)); err != nil {
				t.Errorf("%s has no timestamp, but was rejected: %v", name, err)
			}
		}
	}
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	g := documentedRequests()["slack"]
	for tolerance, within := range map[time.Duration]time.Duration{0: 5 * time.Minute, 10 * time.Second: 10 * time.Second, time.Hour: time.Hour} {
		g.rule.Tolerance = tolerance
		for _, off := range []time.Duration{within, -within} {
			if err := g.rule.Verify(time.Unix(g.at, 0).Add(off), g.header, []byte(g.body)); err != nil {
				t.Errorf("%s: %v", tolerance, err)
			}
		}
		for _, off := range []time.Duration{within + time.Second, -within - time.Second} {
			assertRejected(t, tolerance.String(), g, time.Unix(g.at, 0).Add(off))
		}
	}
}

func TestRejectsInvalidTimestamps(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000
	for _, stamp := range []string{"", "-1", "+1700000000", "01700000000", "1.7e9", "1700000000 ", "0x6553f100", "99999999999999999999", "NaN", "9223372036854775807"} {
		g := validRequest{
			signature.Rule{Scheme: signature.HMAC, Secret: "s", Header: "X-S", Timestamp: "X-T"}, at,
			headers("X-S", hexMAC("s", stamp+".body"), "X-T", stamp), "body",
		}
		assertRejected(t, stamp, g, time.Unix(at, 0))
	}
	// With two timestamps it is ambiguous which one is signed.
	stamp := strconv.Itoa(at)
	g := validRequest{
		signature.Rule{Scheme: signature.Stripe, Secret: "s"}, at,
		headers("Stripe-Signature", "t="+stamp+",t="+stamp+",v1="+hexMAC("s", stamp+".body")), "body",
	}
	assertRejected(t, "two timestamps", g, time.Unix(at, 0))
}

// A signature for one split of id, timestamp and body must not be valid for another.
func TestRejectsAnAmbiguousMessageID(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000
	key := []byte("0123456789abcdef")
	sign := base64.StdEncoding.EncodeToString(mac(sha256.New, string(key), "a.1700000000.1700000000.body"))
	g := validRequest{
		signature.Rule{Scheme: signature.StandardWebhooks, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key)}, at,
		headers("webhook-id", "a.1700000000", "webhook-timestamp", "1700000000", "webhook-signature", "v1,"+sign), "body",
	}
	assertRejected(t, "an id with a dot", g, time.Unix(at, 0))
}

func TestChecksALimitedNumberOfSignatures(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000
	stamp := strconv.Itoa(at)
	many := strings.Repeat("v1="+strings.Repeat("0", 64)+",", 50)
	g := validRequest{
		signature.Rule{Scheme: signature.Stripe, Secret: "s"}, at,
		headers("Stripe-Signature", "t="+stamp+","+many+"v1="+hexMAC("s", stamp+".body")), "body",
	}
	assertRejected(t, "the matching one is beyond the limit", g, time.Unix(at, 0))
}

func TestHeadersListsTheSignatureHeader(t *testing.T) {
	t.Parallel()
	for name, g := range documentedRequests() {
		found := false
		for header := range g.header {
			found = found || slices.Contains(g.rule.Headers(), strings.ToLower(header))
		}
		if !found {
			t.Errorf("%s: %v has none of %v", name, g.header, g.rule.Headers())
		}
	}
}

// No header value that was not made with the secret is accepted.
func FuzzVerify(f *testing.F) {
	for _, g := range documentedRequests() {
		for _, values := range g.header {
			f.Add(values[0], g.body)
		}
	}
	f.Add("t=1700000000,v1=", "")
	f.Add("v1,,v1, ,", "x")
	names := []string{
		"X-Hub-Signature-256", "Stripe-Signature", "X-Slack-Signature", "X-Slack-Request-Timestamp",
		"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-S", "X-T", "Authorization",
	}
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	f.Fuzz(func(t *testing.T, text, body string) {
		h := http.Header{}
		for _, name := range names {
			h.Set(name, text)
		}
		for _, scheme := range signature.Schemes() {
			rule := signature.Rule{Scheme: scheme, Secret: secret}
			switch scheme {
			case signature.HMAC:
				rule.Header, rule.Timestamp = "X-S", "X-T"
			case signature.Basic:
				rule.Username = "u"
			}
			if err := rule.Verify(time.Unix(1_700_000_000, 0), h, []byte(body)); err == nil {
				t.Fatalf("%s accepts %q", scheme, text)
			}
		}
	})
}
