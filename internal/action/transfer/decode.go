package transfer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// DecodeBody returns the body of a response as a value: parsed if it is JSON, a string if it is text,
// and base64 otherwise.
func DecodeBody(resp *egress.Response) any {
	media, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	data := resp.Body
	if isText(media) {
		data = toUTF8(data, cmp.Or(params["charset"], declaredEncoding(media, data)))
	}
	if isJSON(media) {
		if value, err := expr.FromJSON(data); err == nil {
			return value
		}
	}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return string(data)
	}
	return map[string]any{"base64": base64.StdEncoding.EncodeToString(resp.Body)}
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func isXML(media string) bool {
	return media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml")
}

// isText reports whether a type is text, so that its encoding matters.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || isXML(media) || isJSON(media)
}

// xmlEncoding finds the encoding in the declaration of an XML document.
var xmlEncoding = regexp.MustCompile(`^<\?xml\s[^>]*\bencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// declaredEncoding returns the encoding that a document itself declares, or "".
func declaredEncoding(media string, data []byte) string {
	if !isXML(media) {
		return ""
	}
	match := xmlEncoding.FindSubmatch(data[:min(len(data), 512)])
	if match == nil {
		return ""
	}
	return string(match[1])
}

// toUTF8 decodes text from an encoding such as iso-8859-1. A byte order mark takes
// precedence and is removed. Text in an unknown encoding, and bytes that are not valid
// UTF-8 where they should be, stay as they are.
func toUTF8(data []byte, name string) []byte {
	from, err := htmlindex.Get(name)
	if err != nil || from == encoding.Replacement {
		from = unicode.UTF8
	}
	isUTF16 := bytes.HasPrefix(data, []byte{0xfe, 0xff}) || bytes.HasPrefix(data, []byte{0xff, 0xfe})
	if from == unicode.UTF8 && !isUTF16 {
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	decoded, _, err := transform.Bytes(unicode.BOMOverride(from.NewDecoder()), data)
	if err != nil {
		return data
	}
	return decoded
}
