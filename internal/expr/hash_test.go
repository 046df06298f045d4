package expr_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

// The vectors of RFC 1321, RFC 3174 and FIPS 180-2.
func TestHashVectors(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`hash("", "md5")`:                        `"d41d8cd98f00b204e9800998ecf8427e"`,
		`hash("message digest", "md5")`:          `"f96b697d7cb7938d525a2f31aaf161d0"`,
		`hash("abc", "sha1")`:                    `"a9993e364706816aba3e25717850c26c9cd0d89d"`,
		`hash("abc", "sha256") == sha256("abc")`: `true`,
		`hash("abc", "sha512")`:                  `"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"`,
		`hash("a>", "md5", "base64url")`:         `"eT8QwSxMRPwz0e0Gc7zRpA"`,
		`hmac("key", "message", "sha256")`:       `"6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a"`,
		`hmac("a2V5", "message", "sha256", "hex", "base64") == hmacSha256("key", "message")`:     `true`,
		`hmac("_-8=", "a", "md5", "hex", "base64url") == hmac("ffef", "a", "md5", "hex", "hex")`: `true`,
		`hmac("/+8", "a", "md5", "hex", "base64") == hmac("ffef", "a", "md5", "hex", "hex")`:     `true`,
		// What is stored of a step is evaluated with masked secrets.
		`hmac("***", "a", "md5", "hex", "hex")`: `"***"`,
	})
}

// The vectors of RFC 2202 for MD5 and SHA-1 and of RFC 4231 for SHA-256 and
// SHA-512, except those whose text is not UTF-8.
func TestHMACVectors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aa", 131)
	for _, v := range []struct{ algorithm, key, text, want string }{
		{"md5", strings.Repeat("0b", 16), "Hi There", "9294727a3638bb1c13f48ef8158bfc9d"},
		{"md5", hex.EncodeToString([]byte("Jefe")), "what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"},
		{"md5", strings.Repeat("aa", 80), "Test Using Larger Than Block-Size Key - Hash Key First", "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"},
		{"sha1", strings.Repeat("0b", 20), "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"},
		{"sha1", strings.Repeat("0c", 20), "Test With Truncation", "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"},
		{"sha1", strings.Repeat("aa", 80), "Test Using Larger Than Block-Size Key - Hash Key First", "aa4ae5e15272d00e95705637ce8a3b55ed402112"},
		{"sha256", strings.Repeat("0b", 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"sha256", long, "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{"sha512", strings.Repeat("0b", 20), "Hi There", "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"},
		{"sha512", long, "Test Using Larger Than Block-Size Key - Hash Key First", "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"},
	} {
		source := fmt.Sprintf("hmac(%q, %q, %q, 'hex', 'hex')", v.key, v.text, v.algorithm)
		if got := eval(t, source); got != `"`+v.want+`"` {
			t.Errorf("%s = %s, want %s", source, got, v.want)
		}
	}
}

func TestHashErrors(t *testing.T) {
	t.Parallel()
	failTable(t, map[string]string{
		`hash("a", "sha3")`:                     `argument 2 of hash must be "md5", "sha1", "sha256" or "sha512"`,
		`hash("a", "md5", "raw")`:               `argument 3 of hash must be "hex", "base64" or "base64url"`,
		`hash(nil, "md5")`:                      "argument 1 of hash must be a string, got nil; use ?? to give a default",
		`hmac("xyz", "a", "md5", "hex", "hex")`: "argument 1 of hmac is not hex",
		`hmac("x", "a", "md5", "hex", "text ")`: `argument 5 of hmac must be "text", "hex", "base64" or "base64url"`,
	})
}

// failTable checks that every expression fails with its message.
func failTable(t *testing.T, table map[string]string) {
	t.Helper()
	for source, want := range table {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			if e := mustFail(t, source); e.Code != expr.CodeFailed || e.Message != want {
				t.Errorf("%s: %s %q, want %q", source, e.Code, e.Message, want)
			}
		})
	}
}
