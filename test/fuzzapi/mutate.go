package fuzzapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// mutation makes a request that a valid client would not send. It reports whether it
// applies to the request.
type mutation struct {
	name  string
	apply func(g *generator, d *draft) bool
}

// mutations lists all mutations, those of values before those of bytes.
var mutations = slices.Concat(valueMutations, []mutation{
	{"body encoding", encodeBodyAs},
	{"body syntax", breakSyntax},
	{"truncated body", truncateBody},
	{"oversized body", oversizeBody},
	{"content type", changeContentType},
	{"content encoding", changeContentEncoding},
	{"missing body", dropBody},
	{"unexpected body", addUnexpectedBody},
	{"query", changeQuery},
	{"path", changePath},
	{"header", changeHeader},
	{"large header", addLargeHeader},
	{"method", changeMethod},
	{"credentials", changeCredentials},
	{"framing", changeFraming},
})

// mutate applies some mutations to a request.
func (g *generator) mutate(d *draft, count int) {
	for attempt := 0; attempt < 20 && len(d.Mutations) < count && d.Raw == nil; attempt++ {
		if m := pick(g.random, mutations); m.apply(g, d) {
			d.Mutations = append(d.Mutations, m.name)
		}
	}
}

func encodeBodyAs(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) == 0 {
		return false
	}
	bom, charset := []byte("\ufeff"), ""
	switch g.random.IntN(6) {
	case 0:
		d.Body = append(bom, d.Body...)
	case 1, 2:
		var wide []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + string(d.Body))) {
			wide = append(wide, byte(unit), byte(unit>>8))
		}
		d.Body, charset = wide, pick(g.random, []string{"", "utf-16", "utf-16le"})
	case 3:
		at := g.random.IntN(len(d.Body) + 1)
		d.Body = slices.Insert(slices.Clone(d.Body), at, pick(g.random, [][]byte{{0xff}, {0xc0, 0x80}, {0xed, 0xa0, 0x80}, {0xf4, 0x90, 0x80, 0x80}, {0}, {0xc3}})...)
	case 4:
		charset = pick(g.random, []string{"iso-8859-1", "UTF-8", "utf8", "us-ascii", "\"utf-8\"", "nonsense", "utf-8; charset=utf-16"})
	case 5:
		d.Body = bytes.ReplaceAll(d.Body, []byte("e"), []byte{0xe9})
	}
	if charset != "" {
		d.set("Content-Type", d.get("Content-Type")+"; charset="+charset)
	}
	return true
}

func breakSyntax(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) == 0 {
		return false
	}
	body := slices.Clone(d.Body)
	switch g.random.IntN(8) {
	case 0:
		body = body[:g.random.IntN(len(body))]
	case 1:
		body = append(body, pick(g.random, []string{"{}", "x", ",", "\x00", " null", "\n---\n{}", "]"})...)
	case 2:
		body[g.random.IntN(len(body))] ^= byte(1 << g.random.IntN(8))
	case 3:
		body = bytes.ReplaceAll(body, []byte(`"`), []byte(`'`))
	case 4:
		body = bytes.ReplaceAll(body, []byte(`}`), []byte(`,}`))
	case 5:
		body = append([]byte(pick(g.random, []string{"// x\n", "/**/", "<", ")]}',\n", "%YAML 1.2\n---\n", "--- ", "&a ", "!!binary "})), body...)
	case 6:
		body = []byte(pick(g.random, hostileDocuments))
	case 7:
		at := g.random.IntN(len(body))
		end := min(len(body), at+1+g.random.IntN(8))
		body = append(body, body[at:end]...)
	}
	d.Body = body
	return true
}

// hostileDocuments are whole bodies, of JSON or YAML.
var hostileDocuments = []string{
	"", " ", "null", "true", "0", `""`, "[]", "{", "[", "NaN", "-", `{"a":}`, `{"a" 1}`, "{}{}", "\u2028", `{"":""}`, `"\ud800"`,
	"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", "a: !!js/function 'x'", "a: 1\na: 2\n", "\t- a", "? [a]\n: b\n", "<<: {a: 1}\n",
	"steps: *unknown\n", "a: 0x7fffffffffffffffff\n", "a: .nan\n", "a: 2026-01-01\n", "---\n---\n", "%TAG ! x\n---\na: !y z\n", "a: |\n  x\n b: y\n", "- ? - ? - :\n", "a: !!binary //8=\n",
}

func truncateBody(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) < 2 || len(d.Body) > maxWire {
		return false
	}
	d.Cut, d.Chunked = 1+g.random.IntN(len(d.Body)-1), false
	return true
}

// maxWire is the size of the largest body that is written to a connection without
// reading from it at the same time.
const maxWire = 32 << 10

func oversizeBody(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) == 0 || d.Cut > 0 || !g.chance(15) {
		return false
	}
	size := pick(g.random, []int{16<<10 + 1, 256<<10 + 1, 1 << 20, 4 << 20, 4<<20 + 1, 9 << 20})
	padding := bytes.Repeat([]byte(pick(g.random, []string{" ", "[", "x", "\n", `{"a":`})), size)[:size]
	if g.chance(50) {
		d.Body = append(padding, d.Body...)
	} else {
		d.Body = append(slices.Clone(d.Body), padding...)
	}
	d.Chunked = g.chance(50)
	return true
}

func changeContentType(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) == 0 {
		return false
	}
	d.set("Content-Type", pick(g.random, []string{
		"", "text/plain", "application/xml", "application/JSON", "application/json;", "application/json; charset", "application/json, text/plain", "*/*", "/",
		"application/json; charset=utf-8; charset=utf-8", "application/yaml", "application/merge-patch+json", "application/x-www-form-urlencoded",
		"multipart/form-data", "multipart/form-data; boundary=x", "multipart/form-data; boundary=" + strings.Repeat("x", 100), "text/plain; charset=\xff", "application/octet-stream",
		strings.Repeat("a", 300) + "/" + strings.Repeat("b", 300),
	}))
	if g.chance(10) {
		d.add("Content-Type", "application/json")
	}
	return true
}

func changeContentEncoding(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) == 0 {
		return false
	}
	if g.chance(50) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(d.Body) // writing to memory cannot fail
		_ = w.Close()
		d.Body = packed.Bytes()
	}
	d.set("Content-Encoding", pick(g.random, []string{"gzip", "GZIP", "identity", "deflate", "br", "gzip, gzip", "", "nonsense"}))
	return true
}

func dropBody(_ *generator, d *draft) bool {
	if d.Body == nil && !d.hasValue {
		return false
	}
	d.Body, d.hasValue = nil, false
	return true
}

func addUnexpectedBody(g *generator, d *draft) bool {
	if len(d.op.Bodies) > 0 {
		return false
	}
	d.set("Content-Type", "application/json")
	d.Body, d.hasValue = []byte(pick(g.random, []string{`{"a":1}`, "{}", "null", "x", "[1]", `{"id":null}`})), false
	d.Chunked = g.chance(30)
	return true
}

func changeMethod(g *generator, d *draft) bool {
	d.Method = pick(g.random, []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "get", "Post", "X-Y", "PRI", "CONNECT", "GE T", "É", "G\x00"})
	return true
}

func changeCredentials(g *generator, d *draft) bool {
	given := d.As.Credential().Value
	value := pick(g.random, []string{
		"", "Bearer", "Bearer ", "bearer " + strings.TrimPrefix(given, "Bearer "), "Basic YTpi", "Bearer smk_x", given + "x", given + " ", "Bearer\t" + given, given + ", " + given,
		"Bearer " + strings.Repeat("x", 5000), "Bearer smk_\x80\xff", "Bearer smk_12345678_" + strings.Repeat("0", 46), "Digest username=\"a\"", "Bearer null", "=",
	})
	name := pick(g.random, []string{"Authorization", "Authorization", "Cookie"})
	if name == "Cookie" {
		value = pick(g.random, []string{"__Host-stepmill=", "__Host-stepmill=x; __Host-stepmill=y", "__Host-stepmill=" + strings.Repeat("x", 4000), "=;;=", "a=b; __Host-stepmill=\"x\"", "__Host-stepmill=\x80"})
	}
	if g.chance(20) {
		d.add(name, value)
		return true
	}
	d.set(name, value)
	return true
}

// changeFraming writes the request with framing that is ambiguous or not HTTP.
func changeFraming(g *generator, d *draft) bool {
	d.encodeBody()
	if len(d.Body) > maxWire {
		return false
	}
	target := d.finish().Target
	version, extra := "HTTP/1.1", pick(g.random, framings)
	if g.chance(15) {
		version = pick(g.random, []string{"HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "HTTP/1.1 ", "http/1.1", "HTTP/1.10", ""})
	}
	if g.chance(15) {
		target = pick(g.random, []string{"http://localhost" + target, "*", target + "#fragment", "//" + target, strings.TrimPrefix(target, "/"), "http://[::1", "", "/\xff", target + " x"})
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s %s\r\n", d.Method, target, version)
	for _, f := range d.Header {
		fmt.Fprintf(&out, "%s: %s\r\n", f.Name, f.Value)
	}
	if !strings.Contains(extra, "Host") {
		out.WriteString("Host: localhost\r\n")
	}
	out.WriteString(strings.ReplaceAll(extra, "LENGTH", fmt.Sprint(len(d.Body))) + "\r\n")
	out.WriteString("\r\n")
	if strings.Contains(extra, "chunked") && g.chance(70) {
		fmt.Fprintf(&out, pick(g.random, []string{"%x\r\n%s\r\n0\r\n\r\n", "%x;ext=1\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n", "%x\n%s\n0\n\n", "0%x\r\n%s\r\n0\r\n", "-%x\r\n%s", "zz%x\r\n%s", "fffffffffffffffff%x\r\n%s"}), len(d.Body), d.Body)
	} else {
		out.Write(d.Body)
	}
	d.Raw = out.Bytes()
	return true
}

// framings are header fields that say, or seem to say, how long the body is.
var framings = []string{
	"Content-Length: LENGTH\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 0", "Content-Length: LENGTH\r\nContent-Length: 1",
	"Content-Length: LENGTH\r\nContent-Length: LENGTH", "Content-Length: LENGTH, LENGTH", "Content-Length: -1", "Content-Length: +LENGTH", "Content-Length: 99999999999999999999", "Content-Length: 0x10",
	"Content-Length: ", "Content-Length: 1000", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: xchunked",
	"Transfer-Encoding : chunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Content-Length: LENGTH\r\nNo colon",
	"Content-Length: LENGTH\r\n folded", "Content-Length: LENGTH\r\nX: a\x00b", "Content-Length: LENGTH\r\nX-\xe9: a", "Content-Length: LENGTH\r\n: empty", "Content-Length: LENGTH\nX: bare line feed",
	"Host: a\r\nHost: b\r\nContent-Length: LENGTH", "Host: \r\nContent-Length: LENGTH", "Host: a b\r\nContent-Length: LENGTH", "X-No-Host: 1\r\nContent-Length: LENGTH",
	"Expect: 100-continue\r\nContent-Length: LENGTH", "Expect: nonsense\r\nContent-Length: LENGTH", "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: LENGTH",
	"Connection: Upgrade, close, X\r\nUpgrade: websocket\r\nContent-Length: LENGTH", "Content-Length: LENGTH\r\nTrailer: Content-Length", "Content-Length: LENGTH",
}
