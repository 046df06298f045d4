package integration_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// upload is the beginning of an operation with a file.
const upload = shop + `
operations:
  upload:
    title: Upload
    input: {file: {type: file, required: true}, files: {type: list, items: {type: file}}, to: {type: string}}
`

func TestCallsWithFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ call, want string }{
		{`{method: PUT, path: /f, raw: "${{ chunk.data }}", chunk: {file: input.file, size: 5, next: chunk.end + 1, ask: {path: /f}}}`, ""},
		{`{method: POST, path: /f, json: {data: {$base64: {$mime: {to: "${{ input.to }}"}}}}}`, ""},
		{`{method: POST, path: /f, json: {files: {$each: input.files, as: {name: "${{ item.name }}", data: {$base64: "${{ item }}"}}}}}`, ""},
		{`{path: /f, blobs: ["data[].image", "[]"], file_name: a.png}`, ""},

		{`{path: /f, raw: "${{ chunk.data }}"}`, "unknown name chunk"},
		{`{path: /f, raw: "${{ chunk.data }}", chunk: {file: input.file}}`, "/request/chunk: needs file, and size"},
		{`{path: /f, raw: "${{ chunk.data }}", chunk: {size: 5}}`, "/request/chunk: needs file, and size"},
		{`{path: /f, chunk: {file: chunk.data, size: 5}}`, "/request/chunk/file: unknown name chunk"},
		{`{path: /f, chunk: {file: input.file, size: 5}, output: "${{ chunk.data }}"}`, "/request/output: chunk has no data"},
		{`{path: /f, chunk: {file: input.file, size: 5, ask: {path: /f}}}`, "/request/chunk/ask: needs next, which reads the answer"},
		{`{path: /f, chunk: {file: input.file, size: 5, next: "1", ask: {path: /f, raw: "${{ chunk.data }}"}}}`, "/request/chunk/ask/raw: chunk has no data"},
		{`{path: /f, chunk: {file: input.file, size: 5}, items: body, page: {}}`, "/request/chunk: cannot be combined with page"},
		{`{path: /f, raw: {$mime: {subjekt: a}}}`, `/request/raw/$mime/subjekt: "subjekt" is unknown (did you mean "subject"?)`},
		{`{path: /f, raw: {$mime: text}}`, "/request/raw/$mime: must be an object"},
		{`{path: /f, raw: {$mime: {}, prefix: a}}`, "/request/raw/$mime: must be an object, the only member of the one around it"},
		{`{path: /f, json: {files: {$each: input.files}}}`, "/request/json/files: needs $each, an expression that returns a list, and as"},
		{`{path: /f, json: {files: {$each: [a], as: b}}}`, "/request/json/files: needs $each"},
		{`{path: /f, json: {files: {$each: input.files, as: b, to: c}}}`, "/request/json/files: needs $each"},
		{`{path: /f, json: {files: {$each: item, as: b}}}`, "/request/json/files/$each: unknown name item"},
		{`{path: /f, json: {files: {$each: input.files, as: "${{ items }}"}}}`, "/request/json/files/as: unknown name items"},
		{`{path: /f, blobs: [data.]}`, `/request/blobs/0: "data." is not a path`},
		{`{path: /f, blobs: [data], response: text}`, "/request/blobs: are files inside of JSON, but the response is text"},
		{`{path: /f, file_name: a.png}`, "/request/file_name: needs response: file, or blobs"},
	} {
		_, err := integration.Parse([]byte(upload+"    request: "+tc.call), nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", tc.call, err, tc.want)
		}
	}
}
