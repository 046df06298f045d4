package trigger

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// readMultipart decodes a form with files. The body is already in memory and its
// size is limited.
func readMultipart(body []byte, boundary string) (json.RawMessage, error) {
	malformed := fault.New(fault.InvalidRequest, "the body is not a valid multipart form")
	// The reader does not notice a form that is truncated inside a header.
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
		if n >= MaxFields {
			return nil, ErrTooManyFields()
		}
		content, err := io.ReadAll(part)
		if err != nil || part.FormName() == "" {
			return nil, malformed
		}
		if part.FileName() == "" {
			AddField(out, part.FormName(), validText(string(content)))
			continue
		}
		AddField(out, part.FormName(), map[string]any{
			"filename": validText(part.FileName()), "content_type": validText(part.Header.Get("Content-Type")), "base64": content,
		})
	}
}
