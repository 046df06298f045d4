package integration

import (
	"strconv"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpath"
)

// chunkPosition lists the names that locate a part of a file: its first and its last byte,
// and the length of the file.
func chunkPosition() []string { return []string{"offset", "end", "total"} }

// chunk compiles how a call sends a file in parts. The file cannot depend on the part,
// and answers are not read with the bytes of a part at hand. The errors of the call are also
// those of the question how many bytes the service has.
func (p *parser) chunk(pointer string, c *manifestCall, call, answer place, errors []ErrorRule) *Chunk {
	if c.Chunk == nil || call.roots == nil {
		return nil
	}
	chunk := at(pointer, "chunk")
	for name, given := range map[string]bool{"page": c.Page != nil, "batch": c.Batch != nil, "items": c.Items != ""} {
		if given {
			p.failf(chunk, "cannot be combined with %s", name)
		}
	}
	if c.Chunk.File == "" || c.Chunk.Size < 1 {
		p.failf(chunk, "needs file, and size, the most bytes of a request")
	}
	out := &Chunk{
		File: p.program(at(chunk, "file"), c.Chunk.File, call.scope()), Size: c.Chunk.Size,
		Next: p.program(at(chunk, "next"), c.Chunk.Next, answer.answerScope()),
	}
	if c.Chunk.Ask != nil {
		out.Ask = p.call(at(chunk, "ask"), c.Chunk.Ask, answer)
		out.Ask.Errors = append(out.Ask.Errors, errors...)
		if c.Chunk.Next == "" {
			p.failf(at(chunk, "ask"), "needs next, which reads the answer")
		}
	}
	return out
}

func (p *parser) files(pointer string, c *manifestCall, out *Call, answer *expr.Scope) {
	for i, text := range c.Blobs {
		path, err := jsonpath.Parse(text)
		if err != nil {
			p.failf(at(pointer, "blobs", strconv.Itoa(i)), "%s", err)
		}
		out.Blobs = append(out.Blobs, path)
	}
	if c.Blobs != nil && out.Response != ResponseJSON {
		p.failf(at(pointer, "blobs"), "are files inside of JSON, but the response is %s", out.Response)
	}
	out.FileName = p.template(at(pointer, "file_name"), c.FileName, answer, nil)
	if c.FileName != "" && c.Response != ResponseFile && c.Blobs == nil {
		p.failf(at(pointer, "file_name"), "needs response: file, or blobs")
	}
}
