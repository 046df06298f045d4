package sandbox

import "io"

// fileShare is the part of its memory that a script can use for one file: text takes
// up to three times the size of the file while it is decoded.
const fileShare = 4

// host is what a script reaches outside of its runtime.
type host struct {
	out io.Writer
	// data receives the bytes of the file that the script has asked for.
	data chan []byte
	// maxFile is the largest size of a file that a script can read or create.
	maxFile int64
}

// fetch asks the server for the bytes of a given file and waits for them.
func (h host) fetch(index int, size int64) []byte {
	if size == 0 {
		return nil
	}
	h.send(frameRead, readRequest{Index: index})
	data := make([]byte, 0, size)
	for int64(len(data)) < size {
		data = append(data, <-h.data...)
	}
	return data
}

// send sends a frame. If the server no longer reads, this process is about to end.
func (h host) send(kind byte, content any) {
	if frame, err := encodeFrame(kind, content); err == nil { // it can always be encoded
		_, _ = h.out.Write(frame)
	}
}
