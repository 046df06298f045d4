package fuzzapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// maxShrink and shrinkTime limit the search for a smaller request.
const (
	maxShrink  = 300
	shrinkTime = 20 * time.Second
)

// shrink returns a smaller request that still fails, according to a function that
// sends it.
func shrink(failing *Request, fails func(*Request) bool) *Request {
	left, deadline := maxShrink, time.Now().Add(shrinkTime)
	for again := true; again; {
		again = false
		for _, smaller := range smallerRequests(failing) {
			if left--; left < 0 || time.Now().After(deadline) {
				return failing
			}
			if fails(smaller) {
				failing, again = smaller, true
				break
			}
		}
	}
	return failing
}

// smallerRequests returns variants of a request with something left out, those with
// much left out first.
func smallerRequests(q *Request) []*Request {
	var out []*Request
	variant := func(change func(*Request)) {
		smaller := *q
		change(&smaller)
		out = append(out, &smaller)
	}
	if q.Raw != nil {
		head, body, _ := bytes.Cut(q.Raw, []byte("\r\n\r\n"))
		lines := strings.Split(string(head), "\r\n")
		for i := 1; i < len(lines); i++ {
			variant(func(r *Request) {
				r.Raw = slices.Concat([]byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\r\n")), []byte("\r\n\r\n"), body)
			})
		}
		return out
	}
	if q.Cut > 0 {
		variant(func(r *Request) { r.Cut = 0 })
	}
	if q.Chunked {
		variant(func(r *Request) { r.Chunked = false })
	}
	for i := range q.Header {
		variant(func(r *Request) { r.Header = slices.Delete(slices.Clone(q.Header), i, i+1) })
	}
	for i, f := range q.Header {
		if len(f.Value) > 100 {
			variant(func(r *Request) {
				r.Header = slices.Clone(q.Header)
				r.Header[i].Value = f.Value[:len(f.Value)/2]
			})
		}
	}
	if path, query, has := strings.Cut(q.Target, "?"); has {
		variant(func(r *Request) { r.Target = path })
		pairs := strings.Split(query, "&")
		for i := range pairs {
			if len(pairs) > 1 {
				variant(func(r *Request) {
					r.Target = path + "?" + strings.Join(slices.Delete(slices.Clone(pairs), i, i+1), "&")
				})
			}
		}
	}
	for _, body := range smallerBodies(q.Body) {
		variant(func(r *Request) { r.Body, r.Cut = body, min(r.Cut, max(len(body)-1, 0)) })
	}
	return out
}

func smallerBodies(body []byte) [][]byte {
	if len(body) == 0 {
		return nil
	}
	out := [][]byte{nil}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err == nil && len(bytes.TrimSpace(body[decoder.InputOffset():])) == 0 {
		for _, value := range smallerValues(valueOf(decoded)) {
			if smaller := encode(value); len(smaller) < len(body) {
				out = append(out, smaller)
			}
		}
	}
	if len(body) > 1 {
		out = append(out, body[:len(body)/2], body[len(body)/2:])
	}
	return out
}

// smallerValues returns variants of a value with one member or element left out, or a
// long text shortened.
func smallerValues(value any) []any {
	var out []any
	switch v := value.(type) {
	case object:
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1))
		}
		for i := range v {
			for _, smaller := range smallerValues(v[i].value) {
				with := slices.Clone(v)
				with[i].value = smaller
				out = append(out, with)
			}
		}
	case []any:
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1))
		}
		for i := range v {
			for _, smaller := range smallerValues(v[i]) {
				with := slices.Clone(v)
				with[i] = smaller
				out = append(out, with)
			}
		}
	case string:
		if letters := []rune(v); len(letters) > 1 {
			out = append(out, string(letters[:len(letters)/2]), string(letters[len(letters)/2:]))
		}
	}
	return out
}
