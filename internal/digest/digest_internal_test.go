package digest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// find returns the challenge in headers.
func find(t *testing.T, headers ...string) *Challenge {
	t.Helper()
	c, err := Find(http.Header{"Www-Authenticate": headers})
	if err != nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	return c
}

func bodyOf(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// paramsOf returns the parameters of an answer.
func paramsOf(t *testing.T, answer string) map[string]string {
	t.Helper()
	parsed, err := parse(answer)
	if err != nil || len(parsed) != 1 || parsed[0].scheme != "Digest" {
		t.Fatalf("%s: %v, %v", answer, parsed, err)
	}
	return parsed[0].params
}

// The examples of RFC 7616, section 3.9, that of RFC 2617, section 3.5, and what curl
// 7.88.1 sends: curl --digest -u 'Mufasa:Circle of "Life"'. Those of RFC 7616 for
// SHA-512-256 are as corrected by its erratum 4897; curl before 8.10 has another algorithm
// in its place. No other client offers auth-int: those are of Python's hashlib.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const (
		rfc7616   = `realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
		rfcCnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
	)
	mufasa, curl := Credentials{"Mufasa", "Circle of Life"}, Credentials{"Mufasa", `Circle of "Life"`}
	for name, tc := range map[string]struct {
		challenge   string
		with        Credentials
		method, uri string
		cnonce      string
		want        map[string]string
	}{
		"RFC 7616, MD5": {
			"Digest " + rfc7616 + ", algorithm=MD5", mufasa, "GET", "/dir/index.html", rfcCnonce,
			map[string]string{
				"username": "Mufasa", "realm": "http-auth@example.org", "uri": "/dir/index.html", "algorithm": "MD5", "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "nc": "00000001",
				"cnonce": rfcCnonce, "qop": "auth", "response": "8ca523f5e9506fed4657c9700eebdbec", "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
			},
		},
		"RFC 7616, SHA-256": {
			"Digest " + rfc7616 + ", algorithm=SHA-256", mufasa, "GET", "/dir/index.html", rfcCnonce,
			map[string]string{"response": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1", "algorithm": "SHA-256"},
		},
		"RFC 7616, SHA-512-256": {
			`Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true`,
			Credentials{"J\u00e4s\u00f8n Doe", "Secret, or not?"}, "GET", "/doe.json", "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
			map[string]string{
				"username": "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b", "userhash": "true",
				"response": "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5",
			},
		},
		"the same name, decomposed": {
			`Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", charset=UTF-8`,
			Credentials{"Ja\u0308s\u00f8n Doe", "Secret, or not?"}, "GET", "/doe.json", "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
			map[string]string{"username*": "UTF-8''J%C3%A4s%C3%B8n%20Doe", "response": "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"},
		},
		"RFC 2617": {
			`Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"`,
			Credentials{"Mufasa", "Circle Of Life"}, "GET", "/dir/index.html", "0a4f113b",
			map[string]string{"response": "6629fae49393a05397450978507c4ef1", "opaque": "5ccc069c403ebaf9f0171e9517f40e41"},
		},
		"curl, MD5": {
			"Digest " + rfc7616 + ", algorithm=MD5", curl, "GET", "/md5-auth?a=b%20c&d", "MWZhNDNhNzE0YmEzMDg1M2RhYmQwMTdjZTUyMTAxNmI=",
			map[string]string{"response": "94322a4aa747f4190ed3a704673c3194"},
		},
		"curl, MD5-sess": {
			`Digest realm="r", nonce="abc", algorithm=MD5-sess, qop="auth"`, curl, "GET", "/md5-sess?a=b%20c&d", "NDVjNmI4ODZlNzdiNzBkOWZjNmRhNTRiMGQ0MDc1MjQ=",
			map[string]string{"response": "1c8f4af93d219ab622eafc51c3615a64", "algorithm": "MD5-sess"},
		},
		"curl, SHA-256 with quotes": {
			`Digest realm="quoted \"realm\"", nonce="n\\1", algorithm=SHA-256, qop="auth"`, curl, "POST", "/sha-256?a=b%20c&d", "NTE2NDQ2ZDk3Y2RlMWQzN2M0ZjU3YmE3MjQ1YmRiZWU=",
			map[string]string{"response": "7cd125a78567ba04f25ee5b6a6cc84bc0d43a5ea205eb4db960f95e7b7dcc413", "realm": `quoted "realm"`, "nonce": `n\1`},
		},
		"curl, SHA-256-sess": {
			`Digest realm="r", nonce="abc", algorithm=SHA-256-sess, qop=auth`, curl, "GET", "/sha-256-sess?a=b%20c&d", "NzdkYjM3ZGU3NzI0NTdkOGMxMmI2MGMzY2Y5ODY4MGQ=",
			map[string]string{"response": "ca4e1f16bde9b7716e1702fddf7cf798487b5e72bf3cde831414c93a34225c15"},
		},
		"curl, RFC 2069": {
			`Digest realm="old", nonce="xyz", opaque=""`, curl, "POST", "/rfc2069?a=b%20c&d", "unused",
			map[string]string{"response": "56fb48b52a68a6e5587892d7b22a61f7", "opaque": "", "qop": "-", "nc": "-", "cnonce": "-", "algorithm": "-"},
		},
		"curl, beside Basic": {
			`Basic realm="x", Digest realm="r", nonce="abc", qop="auth", algorithm=MD5`, curl, "GET", "/two?a=b%20c&d", "ZTBmNzU1MjVjYmY1YmRmZTAwZmVmOTQyNGZkMWQ3MGU=",
			map[string]string{"response": "a713a8fa972d016243036b357ed92fe2"},
		},
		"auth-int": {
			`Digest realm="r", nonce="abc", qop="auth-int", algorithm=SHA-256`, mufasa, "POST", "/int", "0a4f113b",
			map[string]string{"response": "cc3a4dbe98d6cc60124c63602c81dc522ae004a1e079308e5f1d4912bc90e30a", "qop": "auth-int"},
		},
		"auth-int, a session": {
			`Digest realm="r", nonce="abc", qop="auth-int", algorithm=SHA-512-256-SESS`, mufasa, "POST", "/int", "0a4f113b",
			map[string]string{"response": "c52d0cdfe56825bdfb3f4137fb3be4dc74a19d6161ce5fdd5ade27c09cb5e0bc", "algorithm": "SHA-512-256-SESS"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := find(t, tc.challenge).answer(tc.with, tc.method, tc.uri, bodyOf("a body"), tc.cnonce)
			if err != nil {
				t.Fatal(err)
			}
			got := paramsOf(t, answer)
			for name, want := range tc.want {
				if value, ok := got[name]; ok && want == "-" || want != "-" && value != want {
					t.Errorf("%s is %q, want %q, in %s", name, value, want, answer)
				}
			}
		})
	}
}

func TestAnswersDiffer(t *testing.T) {
	t.Parallel()
	c := find(t, `Digest realm="r", nonce="abc", qop="auth"`)
	one, err := c.Answer(Credentials{"a", "b"}, "GET", "/", nil)
	two, again := c.Answer(Credentials{"a", "b"}, "GET", "/", nil)
	if err != nil || again != nil || one == two {
		t.Errorf("%s, %v, %s, %v", one, err, two, again)
	}
}

func TestBodyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("gone")
	_, err := find(t, `Digest nonce="abc", qop="auth-int"`).Answer(Credentials{}, "GET", "/", func() (io.ReadCloser, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		headers []string
		nonce   string // of the challenge that was found
		says    string // of the error
	}{
		"none":                         {nil, "", ""},
		"other schemes":                {[]string{`Basic realm="Digest, nonce=x"`, "Negotiate YII=", "Bearer"}, "", ""},
		"in the second header":         {[]string{`Basic realm="a"`, `Digest nonce="1"`}, "1", ""},
		"after a token":                {[]string{`Negotiate YII==, Digest nonce="1"`}, "1", ""},
		"after a scheme":               {[]string{`Negotiate, digest NONCE = "1"`}, "1", ""},
		"after a header with an error": {[]string{`Basic realm="a`, `Digest nonce="1"`}, "1", ""},
		"a token as the nonce":         {[]string{`Digest nonce=MTIz/+==,qop=auth`}, "MTIz/+==", ""},
		"an unknown algorithm first":   {[]string{`Digest nonce="1", algorithm=SHA3-256`, `Digest nonce="2", algorithm=md5`}, "2", ""},
		"only unknown algorithms":      {[]string{`Digest nonce="1", algorithm="SHA3\"-256"`, `Digest nonce="2", algorithm=X`}, "", `the algorithm "SHA3\"-256" is not supported`},
		"a long algorithm":             {[]string{`Digest nonce="1", algorithm=` + strings.Repeat("x", 4000)}, "", `the algorithm "` + strings.Repeat("x", 40) + `" is not supported`},
		"an unknown qop":               {[]string{`Digest nonce="1", qop="auth-conf"`}, "", "quality of protection"},
		"no nonce":                     {[]string{`Digest realm="a"`}, "", "no nonce"},
		"a parameter twice":            {[]string{`Digest nonce="1", nonce="2"`}, "", "twice"},
		"an open quote":                {[]string{`Digest nonce="1`}, "", "malformed"},
		"too long":                     {[]string{`Digest nonce="` + strings.Repeat("x", 9000) + `"`}, "", "longer than 8 KiB"},
		"garbage":                      {[]string{`Digest nonce="1", ()`}, "", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Find(http.Header{"Www-Authenticate": tc.headers})
			switch {
			case (c != nil) != (tc.nonce != ""), c != nil && c.nonce != tc.nonce:
				t.Errorf("the challenge is %+v", c)
			case (err != nil) != (tc.says != ""), err != nil && !strings.Contains(err.Error(), tc.says):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// FuzzFind checks that what is found can be answered with a header that reads as it was
// meant, whatever a server sends.
func FuzzFind(f *testing.F) {
	f.Add(`Basic realm="x", Digest realm="quoted \"realm\"", nonce="n\\1", algorithm=SHA-256, qop="auth"`)
	f.Add(`Negotiate YII==, Digest nonce=1, opaque="", userhash=true, charset=UTF-8, stale=TRUE`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Find(http.Header{"Www-Authenticate": {text}})
		if c == nil || err != nil {
			return
		}
		answer, err := c.Answer(Credentials{`a "name\`, "a password"}, "GET", "/?a=b", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := paramsOf(t, answer)
		if got["nonce"] != c.nonce || got["realm"] != c.realm || got["uri"] != "/?a=b" || got["response"] == "" {
			t.Errorf("%s of %+v", answer, c)
		}
	})
}
