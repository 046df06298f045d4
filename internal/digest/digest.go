// Package digest is the client's side of HTTP digest authentication (RFC 7616), also for
// servers that know only its predecessors, RFC 2617 and RFC 2069. It reads challenges and
// answers them; it sends nothing.
package digest

import (
	"cmp"
	"crypto/md5" //nolint:gosec // what many servers ask for
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Credentials are what a person has entered.
type Credentials struct{ Username, Password string }

// Challenge is what a server wants an answer to.
type Challenge struct {
	realm, nonce string
	opaque       *string
	algorithm    string // as the server wrote it; "" if it did not
	qop          string // auth, auth-int, or "" for RFC 2069
	isUTF8       bool
	hashesUser   bool
	// Stale reports that the previous answer was right, but its nonce too old.
	Stale bool
}

// hashes are the algorithms by their name in lower case, without -sess.
var hashes = map[string]func() hash.Hash{"": md5.New, "md5": md5.New, "sha-256": sha256.New, "sha-512-256": sha512.New512_256}

// Find returns the first challenge of a response that can be answered: servers list those
// that they prefer first. It returns nil if there is no digest challenge, and an error that
// says what is wrong with the first one if none can be answered.
func Find(header http.Header) (*Challenge, error) {
	var first error
	for _, value := range header.Values("Www-Authenticate") {
		parsed, err := parse(value)
		if err != nil && strings.Contains(strings.ToLower(value), "digest") {
			first = cmp.Or(first, err)
		}
		for _, one := range parsed {
			if !strings.EqualFold(one.scheme, "Digest") {
				continue
			}
			c, err := newChallenge(one.params)
			if err == nil {
				return c, nil
			}
			first = cmp.Or(first, err)
		}
	}
	return nil, first
}

func newChallenge(params map[string]string) (*Challenge, error) {
	c := &Challenge{
		realm: params["realm"], nonce: params["nonce"], algorithm: params["algorithm"],
		isUTF8: strings.EqualFold(params["charset"], "UTF-8"), hashesUser: strings.EqualFold(params["userhash"], "true"), Stale: strings.EqualFold(params["stale"], "true"),
	}
	if opaque, ok := params["opaque"]; ok {
		c.opaque = &opaque
	}
	if c.nonce == "" {
		return nil, errors.New("the challenge has no nonce")
	}
	if name, _ := c.hash(); hashes[name] == nil {
		return nil, fmt.Errorf("the algorithm %.40q is not supported", c.algorithm)
	}
	offered := strings.FieldsFunc(strings.ToLower(params["qop"]), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	switch {
	case slices.Contains(offered, "auth"):
		c.qop = "auth"
	case slices.Contains(offered, "auth-int"):
		c.qop = "auth-int"
	case len(offered) > 0:
		return nil, fmt.Errorf("the quality of protection %.40q is not supported", params["qop"])
	}
	return c, nil
}

// hash returns the name of the hash function, and whether the key is one of a session.
func (c *Challenge) hash() (name string, isSession bool) {
	return strings.CutSuffix(strings.ToLower(c.algorithm), "-sess")
}

// Answer returns the value of the header Authorization for a request with this method and
// URI, as the request line has it. The body is only read if the server wants it hashed.
func (c *Challenge) Answer(with Credentials, method, uri string, body func() (io.ReadCloser, error)) (string, error) {
	return c.answer(with, method, uri, body, rand.Text())
}

func (c *Challenge) answer(with Credentials, method, uri string, body func() (io.ReadCloser, error), cnonce string) (string, error) {
	const count = "00000001" // a nonce is used once
	name, isSession := c.hash()
	h := func(parts ...string) string {
		sum := hashes[name]()
		_, _ = io.WriteString(sum, strings.Join(parts, ":")) // a hash never fails
		return hex.EncodeToString(sum.Sum(nil))
	}
	user, password := with.Username, with.Password
	if c.isUTF8 {
		user, password = norm.NFC.String(user), norm.NFC.String(password)
	}
	key := h(user, c.realm, password)
	if isSession {
		key = h(key, c.nonce, cnonce)
	}
	request := []string{method, uri}
	if c.qop == "auth-int" {
		sum, err := c.bodyHash(body)
		if err != nil {
			return "", err
		}
		request = append(request, sum)
	}
	response := h(key, c.nonce, h(request...))
	if c.qop != "" {
		response = h(key, c.nonce, count, cnonce, c.qop, h(request...))
	}
	out := c.userParams(user, h(user, c.realm))
	out = append(out, quoted("realm", c.realm), quoted("nonce", c.nonce), quoted("uri", uri), quoted("response", response))
	if c.algorithm != "" {
		out = append(out, "algorithm="+c.algorithm)
	}
	if c.opaque != nil {
		out = append(out, quoted("opaque", *c.opaque))
	}
	if c.qop != "" {
		out = append(out, "qop="+c.qop, "nc="+count)
	}
	if c.qop != "" || isSession {
		out = append(out, quoted("cnonce", cnonce))
	}
	return "Digest " + strings.Join(out, ", "), nil
}

// userParams says who answers. Only servers that say that they read UTF-8 are sent the
// extended notation of names outside of ASCII.
func (c *Challenge) userParams(user, hashed string) []string {
	isASCII := !strings.ContainsFunc(user, func(r rune) bool { return r > '~' })
	switch {
	case c.hashesUser:
		return []string{quoted("username", hashed), "userhash=true"}
	case c.isUTF8 && !isASCII:
		return []string{"username*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(user), "+", "%20")}
	}
	return []string{quoted("username", user)}
}

func (c *Challenge) bodyHash(open func() (io.ReadCloser, error)) (string, error) {
	name, _ := c.hash()
	sum := hashes[name]()
	if open != nil {
		body, err := open()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(sum, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoted(name, value string) string { return name + `="` + escaper.Replace(value) + `"` }
