package transfer_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

func TestDecodeBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		media, body string
		want        any
	}{
		"JSON is parsed":                   {"application/json; charset=utf-8", `{"id": 9007199254740993}`, map[string]any{"id": 9007199254740993}},
		"a JSON subtype is parsed":         {"application/problem+json", `[1]`, []any{1}},
		"invalid JSON is text":             {"application/json", `{"id"`, `{"id"`},
		"text is text":                     {"text/html", "<p>é</p>", "<p>é</p>"},
		"anything else is base64":          {"application/octet-stream", "\xff\x00", map[string]any{"base64": "/wA="}},
		"an empty body is an empty string": {"", "", ""},

		"Latin-1":                          {"text/plain; charset=ISO-8859-1", "caf\xe9", "café"},
		"Windows-1252":                     {"text/html; charset=windows-1252", "\x80 5", "€ 5"},
		"a quoted charset":                 {`text/csv; charset="latin1"`, "\xfc", "ü"},
		"Shift JIS":                        {"text/plain; charset=Shift_JIS", "\x93\xfa\x96\x7b", "日本"},
		"GBK":                              {"text/plain; charset=gbk", "\xd6\xd0", "中"},
		"UTF-16 with a byte order mark":    {"text/plain; charset=utf-16", "\xfe\xff\x00h\x00i", "hi"},
		"UTF-16 little-endian":             {"text/plain; charset=utf-16le", "h\x00i\x00", "hi"},
		"a byte order mark wins":           {"text/plain; charset=latin1", "\xef\xbb\xbf\xc3\xa9", "é"},
		"UTF-16 without a charset":         {"text/plain", "\xff\xfeh\x00i\x00", "hi"},
		"a byte order mark is removed":     {"text/plain", "\xef\xbb\xbfhi", "hi"},
		"JSON after a byte order mark":     {"application/json", "\xef\xbb\xbf[1]", []any{1}},
		"JSON in Latin-1":                  {"application/json; charset=latin1", "\"\xe9\"", "é"},
		"an unknown charset, UTF-8":        {"text/plain; charset=klingon", "é", "é"},
		"an unknown charset":               {"text/plain; charset=klingon", "\xe9", map[string]any{"base64": "6Q=="}},
		"an encoding that is never read":   {"text/plain; charset=iso-2022-kr", "\xe9", map[string]any{"base64": "6Q=="}},
		"no charset and not UTF-8":         {"text/plain", "\xe9", map[string]any{"base64": "6Q=="}},
		"UTF-8 that is not valid":          {"text/plain; charset=utf-8", "\xe9", map[string]any{"base64": "6Q=="}},
		"XML":                              {"application/xml", "<a>é</a>", "<a>é</a>"},
		"XML with a charset":               {"text/xml; charset=iso-8859-1", "<a>\xe9</a>", "<a>é</a>"},
		"XML with a declaration":           {"application/soap+xml", `<?xml version="1.0" encoding='ISO-8859-1'?><a>` + "\xe9</a>", `<?xml version="1.0" encoding='ISO-8859-1'?><a>é</a>`},
		"the charset before a declaration": {"application/xml; charset=utf-8", `<?xml version="1.0" encoding="latin1"?><a>é</a>`, `<?xml version="1.0" encoding="latin1"?><a>é</a>`},
		"binary with a charset":            {"application/octet-stream; charset=latin1", "\xe9", map[string]any{"base64": "6Q=="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &egress.Response{Header: http.Header{"Content-Type": {test.media}}, Body: []byte(test.body)}
			if diff := cmp.Diff(test.want, transfer.DecodeBody(resp)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
