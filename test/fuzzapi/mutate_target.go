package fuzzapi

import (
	"slices"
	"strings"
)

// changeQuery changes the query, or adds to it.
func changeQuery(g *generator, d *draft) bool {
	names := []string{"unknown", "limit", "cursor", "", "a b", "limit%00", "LIMIT", "%6cimit", "_", "limit[]"}
	for _, p := range d.op.Params {
		if p.In == "query" {
			names = append(names, p.Name, p.Name, p.Name)
		}
	}
	name := pick(g.random, names)
	if len(d.query) > 0 && g.chance(20) {
		d.query = append(d.query, pick(g.random, d.query)) // repeated
		return true
	}
	if i := slices.IndexFunc(d.query, func(q string) bool { return strings.HasPrefix(q, name+"=") }); i >= 0 && g.chance(80) {
		d.query = slices.Delete(d.query, i, i+1)
	}
	d.query = append(d.query, name+"="+pick(g.random, hostileQueryValues))
	return true
}

var hostileQueryValues = []string{
	"", "0", "-1", "1", "100", "101", "1.5", "1e2", "+5", "%2B5", "05", " 5", "%205", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "0x10", "NaN", "null", "true", "%00", "a%00b", "%ff", "%c0%80", "%ed%a0%80",
	"%", "%z", "%zz", "%2", "a;b", "a&b=c", "a=b=c", "%0d%0aX-Injected:%201", "..%2f..%2f", "%27%20OR%201=1--", "%25", "_", "*", "%E2%80%AE", "%EF%BB%BF", "%F0%9F%92%A9", "漢", "\xff", "<script>", "[]", "{}", "\"", "|", "`", "^",
	strings.Repeat("x", 201), strings.Repeat("x", 5000), strings.Repeat("%20", 100), strings.Repeat("a+", 500), "2026-02-30T00:00:00Z", "2026-01-01T00:00:00%2B01:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999999Z", "2026-01-01", "1700000000", "-1h",
	"running,failed", "running,", ",", "running%2Crunning", "run.started,run.started", "unknown", "wf_01m7f8njhve3pt0yekqqme4qcm", "eyJhIjoxfQ", "AAAA", "====", "each[0]", "each[-1]", "each[99999999999999999999]", "each[", "a.b[0].c",
}

var hostileSegments = []string{
	"", ".", "..", "%2e", "%2e%2e", "..%2f..%2f", "%2f", "%5c..%5c", "..;", ";a=b", "%00", "a%00", "%0a", "%0d%0aX:1", "%ff", "%c0%ae%c0%ae", "%ed%a0%80", "%", "%z", "%2", "%25", "%252e%252e", "a%20b", " ", "+", "~", "*", "'", "%22", "<x>", "|", "\\", "漢", "\xff",
	"%F0%9F%92%A9", "%E2%80%AE", "%EF%BB%BF", "null", "undefined", "0", "-1", "1e2", "9223372036854775808", "999999999999999999999999", "01", "+1", "1.0", "wf_", "wf_01m7f8njhve3pt0yekqqme4qcm", "run_01m7f9hb3mevr88y42wdngtn4v", "WF_01M7F8NJHVE3PT0YEKQQME4QCM",
	"wf_zzzzzzzzzzzzzzzzzzzzzzzzzz", "each[0]", "each%5B0%5D.inner", "each[99999999999999999999]", "each[-1]", "each[", "__proto__", "import", "stream", strings.Repeat("x", 300), strings.Repeat("x", 10_000), strings.Repeat("%41", 1000), strings.Repeat("a.", 2000), "a?b", "a#b", "@x", ":", "v1",
}

// changePath changes a segment of the path, or the number of segments.
func changePath(g *generator, d *draft) bool {
	at := 1 + g.random.IntN(len(d.segments)-1)
	if pattern := strings.Split(d.op.Path, "/"); g.chance(70) {
		shift := len(d.segments) - len(pattern) // of the prefix /ui
		for i, segment := range pattern {
			if strings.HasPrefix(segment, "{") && i+shift < len(d.segments) && i+shift > 0 {
				at = i + shift
			}
		}
	}
	d.segments = slices.Clone(d.segments)
	switch g.random.IntN(10) {
	case 0:
		d.segments = append(d.segments, "")
	case 1:
		d.segments = slices.Insert(d.segments, at, pick(g.random, hostileSegments))
	case 2:
		if len(d.segments) > 2 {
			d.segments = slices.Delete(d.segments, at, at+1)
		}
	case 3:
		d.segments[at] = strings.ToUpper(d.segments[at])
	case 4:
		d.segments[at] += pick(g.random, []string{"%00", "%20", ".json", "/", "//", "%2f", ";x", "%ff", "x", "'"})
	default:
		d.segments[at] = pick(g.random, hostileSegments)
	}
	return true
}

// changeHeader sets a header field that has a meaning to the service.
func changeHeader(g *generator, d *draft) bool {
	field := pick(g.random, hostileFields)
	value := pick(g.random, field.values)
	if g.chance(15) {
		value = pick(g.random, []string{"", " ", ",", "\x80\xff", "é", strings.Repeat("x", 256), strings.Repeat("x", 4000), "a\tb", "\"", "a\x00b", "a\x01b", strings.Repeat("a,", 1000)})
	}
	if g.chance(15) {
		d.add(field.name, value)
		return true
	}
	d.set(field.name, value)
	return true
}

var hostileFields = []struct {
	name   string
	values []string
}{
	{"If-Match", []string{"*", "\"", "\"x\"", "W/\"x\"", "x", "*, \"x\"", "\"a\", \"b\"", "\"\"", "\"a", strings.Repeat("\"a\", ", 500)}},
	{"If-None-Match", []string{"*", "\"x\"", "W/\"x\"", "x", "\"a", "**"}},
	{"Idempotency-Key", []string{"same", "other", strings.Repeat("k", 255), strings.Repeat("k", 256), "a b", "\"a\"", "é", "a\tb"}},
	{"Prefer", []string{"wait=-1", "wait=0", "wait=1.5", "wait=61", "wait=99999999999999999999", "wait", "wait=", "wait=\"1\"", "wait=1, wait=0", "respond-async", "wait=1; foo=bar", "WAIT=0", "wait = 1", ";", "return=minimal"}},
	{"Accept", []string{"*/*", "text/html", "application/yaml", "application/yaml;q=0", "application/json;q=2", "text/event-stream", "x", "*/json", "application/*", ";q=1", "application/yaml, application/json;q=0.5", "application/json; q=nan", strings.Repeat("a/b,", 1000)}},
	{"Accept-Encoding", []string{"gzip", "identity;q=0", "*;q=0", "br", "gzip;q=x"}},
	{"Last-Event-ID", []string{"0", "-1", "1", "99999999999999999999", "x", "1-", "1-1-1", "evt_01m7f9hc94ee9ag9yxnpgq1csr", "'", "9223372036854775807-9223372036854775807"}},
	{"Range", []string{"bytes=0-1", "bytes=-1", "bytes=1-0", "bytes=0-0,2-3", "bytes=99999999999-", "items=0-1"}},
	{"X-Service-Depth", []string{"0", "10", "11", "-1", "99999999999999999999", "x", "1.5", "+1", "0x1"}},
	{"X-Forwarded-For", []string{"1.2.3.4", "x", "::1", "1.2.3.4, 5.6.7.8", "unknown"}},
	{"X-Request-Id", []string{"mine", "req_01m7fcp3qae35rw9hmckwyqppc"}},
	{"X-HTTP-Method-Override", []string{"DELETE", "GET"}},
	{"Origin", []string{"null", "https://other.example", "http://localhost", "x"}},
	{"Sec-Fetch-Site", []string{"cross-site", "same-origin", "none", "x"}},
	{"Referer", []string{"https://other.example/", "x"}},
	{"Cookie", []string{"a=b", "__Host-stepmill=x", ";"}},
	{"User-Agent", []string{"", "\x80", strings.Repeat("u", 3000)}},
	{"Accept-Language", []string{"de", "*", "\x80"}},
	{"If-Modified-Since", []string{"x", "Mon, 01 Jan 2024 00:00:00 GMT"}},
	{"Content-MD5", []string{"x"}},
}

// addLargeHeader adds fields that together exceed what the service accepts, or nearly.
func addLargeHeader(g *generator, d *draft) bool {
	if len(d.Body) > maxWire || !g.chance(20) {
		return false // the response would come before the body is sent
	}
	size := pick(g.random, []int{20 << 10, 30 << 10, 40 << 10, 100 << 10})
	if g.chance(50) {
		d.add("X-Large", strings.Repeat("x", size))
	} else {
		for range size / 100 {
			d.add("X-Many", strings.Repeat("y", 90))
		}
	}
	return true
}
