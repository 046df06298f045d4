package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ids are data: an arbitrary string in place of an id finds nothing and is only
// returned as text in JSON.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	s, w := newServerWithData(t)
	before := s.tableContents(t)
	good := w.names["wf"]
	ids := []string{
		"'", "' OR '1'='1", "\";DROP TABLE workflows;--", "%", "_", "*", "null", "undefined", "-1", "0", "NaN", "{id}", "$wf", "~", "\\",
		"<script>alert(1)</script>", "\r\nX-Evil: 1", "\n", "\t", "\x00", good + "\x00", good + "\n", " " + good, good + " ", strings.ToUpper(good), good + "x", good[:len(good)-1],
		"wf_" + strings.Repeat("z", 26), "wf_" + strings.Repeat("0", 25), "WF_" + good[3:], "run" + good[2:], "😀", "\u202e", "\xff\xfe", "a/b", strings.Repeat("a", 8000),
	}
	for _, route := range routes() {
		if _, _, _, has := collection(route); !has || createsMissing(route) {
			continue
		}
		t.Run(routeName(route), func(t *testing.T) {
			c := authorizedClient(w.withT(t), route)
			for _, id := range ids {
				a := c.call(route.Method, routePath(route, url.PathEscape(id)), routeBody(t, route))
				if a.status != http.StatusNotFound {
					t.Errorf("%.40q: got %d %.200s", id, a.status, a.body)
				}
				if a.header.Get("X-Evil") != "" || strings.ContainsAny(string(a.body), "\x00\r") {
					t.Errorf("%.40q: it came back raw: %v %q", id, a.header, a.body)
				}
			}
		})
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("the store changed (-before +after):\n%s", diff)
	}
}

func TestHostileQueries(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, query := range []string{
		"a", "=", "&", "&&", "limit", "limit=1;cursor=x", "limit=%zz", "limit=1&limit=1", "%00=1", "limit%00=1", "LIMIT=1", "Limit=1", "limit[]=1", "limit=1%00", "limit=%F0%9F%98%80",
		strings.Repeat("a", 16<<10), strings.Repeat("a=1&", 4000), "cursor=" + strings.Repeat("A", 16<<10), "state=" + strings.Repeat("draft,", 1000), "api_key=x", "__proto__=1",
	} {
		a := w.call("GET", "/v1/workflows?"+query, "")
		// Separators alone have no meaning and are accepted.
		if a.status != 400 && strings.Trim(query, "&") != "" || len(a.body) > 4096 {
			t.Errorf("%.40s: got %d with %d bytes", query, a.status, len(a.body))
		}
	}
}

// Headers that could be harmful elsewhere have no effect.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	want := string(w.call("GET", "/v1/workflows/$wf", "").wantStatus(200).body)
	for _, header := range [][]string{
		{"X-HTTP-Method-Override", "DELETE"}, {"X-Method-Override", "DELETE"}, {"X-Original-URL", "/v1/api-keys"}, {"X-Rewrite-URL", "/v1/api-keys"},
		{"X-Forwarded-Host", "evil.example"}, {"X-Forwarded-Proto", "https"}, {"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Referer", "https://evil.example"},
		{"Range", "bytes=0-1"}, {"If-None-Match", "*"}, {"If-Modified-Since", "Sat, 29 Oct 2094 19:43:31 GMT"}, {"Upgrade", "websocket"}, {"Accept", "text/html"}, {"Accept-Language", strings.Repeat("x,", 5000)},
		{"Cookie", "session=x"}, {"X-Workspace-Id", "ws_01m7fe3gv0es8r65rzyjka792g"}, {"Te", "trailers"}, {"Max-Forwards", "0"},
	} {
		a := w.call("GET", "/v1/workflows/$wf", "", header...)
		if a.status != 200 || string(a.body) != want {
			t.Errorf("%v: got %d %s", header, a.status, a.body)
		}
	}
	// No other site may make requests with the credentials of a user.
	w.call("OPTIONS", "/v1/workflows", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST").wantStatus(405)
}
