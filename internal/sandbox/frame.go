package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Server and child exchange frames: one byte for the kind, four bytes for the
// length of the body, and the body as JSON. Only the body of a data frame is bytes.
//
// While a script runs, the child can ask for a file, and the server sends its bytes
// in data frames. When the script has ended, the child sends the files that it
// created: a create frame and data frames for each, and then the reply.
const (
	frameRun    = 'r' // to the child: run a script
	frameCheck  = 'c' // to the child: compile a script
	frameData   = 'd' // to the child and from it: bytes of a file
	frameLine   = 'l' // from the child: a Line
	frameRead   = 'o' // from the child: a readRequest
	frameCreate = 'n' // from the child: a createRequest
	frameReply  = 'a' // from the child: a reply
	frameMemory = 'm' // from the child: the script exceeded its memory limit
)

const (
	frameHeader = 5
	// maxFrame has room for the largest body with every byte of code escaped, and for
	// the descriptions of files, which take about as much room as in the input.
	maxFrame = 6*MaxCode + 2*MaxInput + 1<<10
)

type request struct {
	Code  string          `json:"code"`
	Input json.RawMessage `json:"input,omitempty"`
	// Marker and Files are those of [Files].
	Marker string `json:"marker,omitempty"`
	Files  []File `json:"files,omitempty"`
}

// readRequest asks for the bytes of a given file.
type readRequest struct {
	Index int `json:"index"`
}

// createRequest begins a file that the script returns.
type createRequest struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type reply struct {
	Output  json.RawMessage `json:"output,omitempty"`
	Failure *Failure        `json:"failure,omitempty"`
}

// encodeFrame returns a frame, to be sent with a single write.
func encodeFrame(kind byte, content any) ([]byte, error) {
	var frame bytes.Buffer
	frame.Write(make([]byte, frameHeader))
	encoder := json.NewEncoder(&frame)
	encoder.SetEscapeHTML(false) // escaping would make the body larger
	if err := encoder.Encode(content); err != nil {
		return nil, err
	}
	length := frame.Len() - frameHeader
	if length > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes is too large", length)
	}
	frame.Bytes()[0] = kind
	binary.BigEndian.PutUint32(frame.Bytes()[1:], uint32(length))
	return frame.Bytes(), nil
}

// dataFrame makes a data frame of a buffer that has room for the header.
func dataFrame(buffer []byte) []byte {
	buffer[0] = frameData
	binary.BigEndian.PutUint32(buffer[1:], uint32(len(buffer)-frameHeader))
	return buffer
}

// readFrame reads a frame. It checks the length before it allocates memory
// for it.
func readFrame(r io.Reader) (kind byte, body []byte, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if length > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too large", length)
	}
	body = make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return header[0], body, nil
}
