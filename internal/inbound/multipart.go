package inbound

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// readMultipart reads a form with files. Everything is in memory already, and
// bounded with it.
func readMultipart(body []byte, boundary string) (json.RawMessage, error) {
	malformed := fault.New(fault.InvalidRequest, "the body is not a well-formed multipart form")
	if boundary == "" {
		return nil, malformed
	}
	reader, out := multipart.NewReader(bytes.NewReader(body), boundary), map[string]any{}
	for n := 0; ; n++ {
		part, err := reader.NextPart()
		if err == io.EOF { //nolint:errorlint // wrapped in another it says that the form is cut short
			return strictjson.Encode(out)
		}
		if err != nil {
			return nil, malformed
		}
		if n >= maxFields {
			return nil, tooMany()
		}
		content, err := io.ReadAll(part)
		if err != nil || part.FormName() == "" {
			return nil, malformed
		}
		if part.FileName() == "" {
			add(out, clean(part.FormName()), clean(string(content)))
			continue
		}
		add(out, clean(part.FormName()), map[string]any{
			"filename": clean(part.FileName()), "content_type": clean(part.Header.Get("Content-Type")), "base64": content,
		})
	}
}
