package fuzzapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Request is a request as it is sent.
type Request struct {
	As             *Identity
	Method, Target string
	Header         []Field
	Body           []byte
	Chunked        bool
	// Cut sends only this many bytes of the body, if it is positive, and then no more.
	Cut int
	// Raw is sent in place of everything above. Only Method and Target still tell which
	// operation it is for.
	Raw []byte
	// Mutations says what was changed in a valid request.
	Mutations []string
}

// Field is a header field.
type Field struct{ Name, Value string }

// Identity is a caller: the credentials that it sends.
type Identity struct {
	Name string
	// Workspace is the one of an API key. It is empty for a session, which can change
	// its workspace.
	Workspace string
	// Sees is the workspace whose ids the requests contain.
	Sees string
	// Session calls the operations below /ui/v1.
	Session bool
	// Credential returns the header field, which is empty for anonymous callers.
	Credential func() Field
}

func (r *Request) get(name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// path returns the escaped path of the target.
func (r *Request) path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// waits reports whether the caller asked for a response that may take long.
func (r *Request) waits() bool {
	return r.get("Prefer") != "" || strings.HasPrefix(r.path(), "/hooks/") || r.Cut > 0 || r.Raw != nil
}

var (
	token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	// managed are the fields that Go's client sets by itself.
	managed = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Expect", "Upgrade"}
)

// needsWire reports whether Go's client would refuse or change the request.
func (r *Request) needsWire() bool {
	if r.Raw != nil || r.Cut > 0 || !token.MatchString(r.Method) || r.Method == http.MethodConnect {
		return true
	}
	for _, f := range r.Header {
		if !token.MatchString(f.Name) || slices.ContainsFunc(managed, func(m string) bool { return strings.EqualFold(m, f.Name) }) ||
			strings.ContainsFunc(f.Value, isControl) {
			return true
		}
	}
	parsed, err := url.Parse("http://localhost" + r.Target)
	return err != nil || parsed.RequestURI() != r.Target || strings.Contains(r.Target, " ")
}

// maxHead is the size of a request line with its header fields that the service accepts.
// net/http adds 4 KiB to it.
const maxHead = 32 << 10

// malformed reports whether the request is not valid HTTP, so that net/http itself may
// reject it.
func (r *Request) malformed() bool {
	if r.Raw != nil || !token.MatchString(r.Method) || r.Method == http.MethodConnect || r.Method == "PRI" {
		return true
	}
	size := len(r.Method) + len(r.Target)
	for _, f := range r.Header {
		size += len(f.Name) + len(f.Value) + len(": \r\n")
		if !token.MatchString(f.Name) || strings.ContainsFunc(f.Value, isControl) {
			return true
		}
	}
	_, err := url.ParseRequestURI(r.Target)
	return err != nil || size > maxHead || strings.ContainsFunc(r.Target, func(c rune) bool { return c == ' ' || isControl(c) })
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// wire returns the bytes of the request.
func (r *Request) wire() []byte {
	if r.Raw != nil {
		return r.Raw
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\n", r.Method, r.Target)
	for _, f := range r.Header {
		fmt.Fprintf(&out, "%s: %s\r\n", f.Name, f.Value)
	}
	switch {
	case r.Chunked:
		out.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		if len(r.Body) > 0 {
			fmt.Fprintf(&out, "%x\r\n%s\r\n", len(r.Body), r.Body)
		}
		out.WriteString("0\r\n\r\n")
	case len(r.Body) > 0 || r.Method == http.MethodPost:
		fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n", len(r.Body))
		out.Write(r.Body)
	default:
		out.WriteString("\r\n")
	}
	if r.Cut > 0 {
		out.Truncate(out.Len() - min(r.Cut, len(r.Body)))
	}
	return out.Bytes()
}

// maxShown is the size from which on a body is written to a file.
const maxShown = 2000

// Curl returns a command that sends the request to a base URL. Requests that curl
// cannot send are sent with nc.
func (r *Request) Curl(base string) string {
	if r.needsWire() {
		host := strings.Replace(strings.TrimPrefix(base, "http://"), ":", " ", 1)
		return "printf " + quote(strings.ReplaceAll(string(r.wire()), "%", "%%")) + " | nc -q 5 " + host
	}
	out := "curl -sS -i --path-as-is -X " + r.Method + " " + quote(base+r.Target)
	if r.Method == http.MethodHead {
		out = "curl -sS -I --path-as-is " + quote(base+r.Target)
	}
	for _, f := range r.Header {
		if f.Value == "" {
			out += " -H " + quote(f.Name+";")
			continue
		}
		out += " -H " + quote(f.Name+": "+f.Value)
	}
	if r.Chunked {
		out += " -H 'Transfer-Encoding: chunked'"
	}
	if len(r.Body) == 0 {
		return out
	}
	if r.get("Content-Type") == "" {
		out += " -H 'Content-Type:'" // curl would add one
	}
	if len(r.Body) > maxShown {
		if file, err := os.CreateTemp("", "fuzz-api-body-"); err == nil {
			_, err = file.Write(r.Body)
			if closed := file.Close(); err == nil && closed == nil {
				return out + " --data-binary @" + file.Name()
			}
		}
	}
	return out + " --data-binary " + quote(string(r.Body))
}

// quote quotes text for a shell, with $'…' if it has unprintable bytes.
func quote(text string) string {
	plain := !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
	if plain {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var out strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b == '\'' || b == '\\':
			out.WriteString(`\` + string(rune(b)))
		case b < ' ' || b > '~':
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	return "$'" + out.String() + "'"
}
