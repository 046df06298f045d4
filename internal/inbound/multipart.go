package inbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// readMultipart reads a form with files. Everything is in memory already, and
// bounded with it.
func readMultipart(body []byte, boundary string) (json.RawMessage, error) {
	malformed := fault.New(fault.InvalidRequest, "the body is not a well-formed multipart form")
	// A reader takes one that is cut short inside a header for one that has ended.
	if boundary == "" || !bytes.Contains(body, []byte("--"+boundary+"--")) {
		return nil, malformed
	}
	reader, out := multipart.NewReader(bytes.NewReader(body), boundary), map[string]any{}
	for n := 0; ; n++ {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
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
