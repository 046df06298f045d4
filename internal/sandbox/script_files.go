package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/dop251/goja"
)

type files struct {
	host  host
	of    map[*goja.Object]*file // by identity, which a script cannot forge
	given int
	// returned are the files in the output that the script has created.
	returned  []*file
	reads     int
	readBytes int64

	prototype             *goja.Object
	rangeError, byteArray goja.Value
}

type file struct {
	File
	created bool
	data    []byte // of a created file
	// index is what the server knows the file by.
	index int
}

// notReturned is the index of a created file that is not in the output.
const notReturned = -1

func (f *file) hash() string {
	if f.SHA256 == "" {
		sum := sha256.Sum256(f.data)
		f.SHA256 = hex.EncodeToString(sum[:])
	}
	return f.SHA256
}

// indexOf returns the index of a file in the output. A created file gets the next one
// and will be sent to the server.
func (s *files) indexOf(f *file) int {
	if f.index == notReturned {
		f.index = s.given + len(s.returned)
		s.returned = append(s.returned, f)
	}
	return f.index
}

// sendReturned sends the server the files in the output that the script has created.
func (s *files) sendReturned() *Failure {
	if len(s.returned) == 0 {
		return nil
	}
	if len(s.returned) > MaxCreated {
		return &Failure{Kind: TooLarge, Message: fmt.Sprintf("the script returned %d new files; the limit is %d", len(s.returned), MaxCreated)}
	}
	frame := make([]byte, frameHeader+chunkSize)
	for _, f := range s.returned {
		s.host.send(frameCreate, createRequest{Name: f.Name, Type: f.Type})
		for rest := f.data; len(rest) > 0; {
			n := copy(frame[frameHeader:], rest)
			_, _ = s.host.out.Write(dataFrame(frame[:frameHeader+n])) // see send
			rest = rest[n:]
		}
	}
	return nil
}
