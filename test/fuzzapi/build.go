package fuzzapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// draft is a request that is being made.
type draft struct {
	Request
	op       *Operation
	segments []string // of the path, escaped
	query    []string // name=value, escaped
	value    any      // of the body, until it is encoded
	hasValue bool
}

// draft returns a valid request for an operation.
func (g *generator) draft(op *Operation, as *Identity) *draft {
	d := &draft{Request: Request{As: as, Method: op.Method}, op: op}
	d.segments = strings.Split(op.Path, "/")
	g.workspace = as.Sees
	if as.Session && !op.SessionOnly && strings.HasPrefix(op.Path, "/v1/") {
		d.segments = slices.Insert(d.segments, 1, "ui")
	}
	if credential := as.Credential(); credential.Name != "" {
		d.set(credential.Name, credential.Value)
	}
	for _, p := range op.Params {
		g.addParam(d, p)
	}
	g.addBody(d)
	return d
}

func (g *generator) addParam(d *draft, p Param) {
	if p.In != "path" && !p.Required && !g.chance(30) {
		return
	}
	switch p.In {
	case "path":
		i := slices.Index(d.segments, "{"+p.Name+"}")
		d.segments[i] = url.PathEscape(g.pathValue(d.segments[i-1], p))
	case "query":
		d.query = append(d.query, url.QueryEscape(p.Name)+"="+url.QueryEscape(g.paramText(p)))
	case "header":
		// A header with a control character is no HTTP; mutations make such requests.
		text := strings.Map(func(c rune) rune {
			if isControl(c) {
				return '?'
			}
			return c
		}, g.paramText(p))
		if p.Name == "Idempotency-Key" && g.chance(80) {
			text = fmt.Sprintf("%x", g.random.Uint64())
		}
		d.set(p.Name, text)
	}
}

// pathValue returns a value that exists, or the documented example, which does not.
func (g *generator) pathValue(kind string, p Param) string {
	if value, ok := g.known.one(g.random, kind, g.workspace); ok && g.chance(95) {
		return value
	}
	return fmt.Sprint(p.Example)
}

func (g *generator) paramText(p Param) string {
	if text, ok := g.known.named(g.random, p.Name, g.workspace); ok && !g.edge {
		return text
	}
	switch value := g.value(p.Name, p.Schema, 0).(type) {
	case string:
		return value
	default:
		return strings.Trim(string(encode(value)), `"`)
	}
}

func (g *generator) addBody(d *draft) {
	if len(d.op.Bodies) == 0 {
		if d.Method != http.MethodGet && g.chance(20) {
			d.set("Content-Type", "application/json")
			d.value, d.hasValue = object{}, true
		}
		return
	}
	if !d.op.BodyNeeded && g.chance(20) {
		return
	}
	medias := slices.Sorted(maps.Keys(d.op.Bodies))
	media := medias[0]
	if g.chance(30) {
		media = pick(g.random, medias)
	}
	d.set("Content-Type", media)
	content := d.op.Bodies[media]
	if examples := content.examples(); len(examples) > 0 && g.chance(40) {
		d.value = g.localize(valueOf(pick(g.random, examples)))
	} else {
		d.value = g.localize(g.value("", content.At("schema"), 0))
	}
	d.hasValue = true
	if media == "application/x-www-form-urlencoded" {
		d.Body, d.hasValue = []byte(form(d.value)), false
	}
}

func form(value any) string {
	fields := url.Values{}
	members, _ := value.(object)
	for _, m := range members {
		fields.Set(m.name, strings.Trim(string(encode(m.value)), `"`))
	}
	return fields.Encode()
}

var anyURL = regexp.MustCompile(`[a-z]+://[^/\s"'?#]+`)

// localize replaces the hosts in a value, so that nothing is sent off this machine, and
// most ids of the examples with ids that exist.
func (g *generator) localize(value any) any {
	return walk(value, func(at any, replace func(any)) {
		text, isText := at.(string)
		if !isText {
			return
		}
		if match := idValue.FindStringSubmatch(text); match != nil && g.chance(80) {
			if id, ok := g.known.one(g.random, prefixes[match[1]], g.workspace); ok {
				replace(id)
			}
			return
		}
		if strings.Contains(text, "://") {
			replace(anyURL.ReplaceAllLiteralString(text, g.known.Receiver))
		}
	})
}

// set replaces a header field.
func (d *draft) set(name, value string) {
	d.Header = slices.DeleteFunc(d.Header, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	d.add(name, value)
}

func (d *draft) add(name, value string) { d.Header = append(d.Header, Field{name, value}) }

// encodeBody makes the bytes of the body.
func (d *draft) encodeBody() {
	if d.hasValue {
		d.Body, d.hasValue = encode(d.value), false
	}
}

// finish returns the request.
func (d *draft) finish() *Request {
	d.encodeBody()
	d.Target = strings.Join(d.segments, "/")
	if len(d.query) > 0 {
		d.Target += "?" + strings.Join(d.query, "&")
	}
	if len(d.Body) > maxWire && d.needsWire() {
		d.Body = d.Body[:maxWire] // a response to the head would be lost while the body is sent
	}
	return &d.Request
}
