package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// chunkSize is the size of the pieces in which the bytes of files are exchanged.
const chunkSize = 64 << 10

// storageError is an error of a [Storage], which the script did not cause.
type storageError struct{ error }

// fileServer serves the files of a script to its child. It does not trust the child:
// it checks every index and limit.
type fileServer struct {
	files   Files
	reads   int
	read    int64
	created int
	current FileWriter // the file that is being created; nil for none
}

// send sends the child the bytes of a file that it asked for.
func (s *fileServer) send(ctx context.Context, to io.Writer, body []byte) error {
	var r readRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("decode a read request: %w", err)
	}
	if r.Index < 0 || r.Index >= len(s.files.Given) {
		return fmt.Errorf("the child asks for file %d of %d", r.Index, len(s.files.Given))
	}
	size := s.files.Given[r.Index].Size
	s.reads++
	s.read += size
	if s.reads > MaxReads || s.read > MaxReadBytes {
		return errors.New("the child exceeds the limit of reads")
	}
	from, err := s.files.Storage.Open(ctx, r.Index)
	if err != nil {
		return storageError{err}
	}
	defer func() { _ = from.Close() }()
	return sendBytes(to, from, size)
}

func sendBytes(to io.Writer, from io.Reader, size int64) error {
	frame := make([]byte, frameHeader+min(size, chunkSize))
	for size > 0 {
		chunk := frame[frameHeader:][:min(size, chunkSize)]
		if _, err := io.ReadFull(from, chunk); err != nil {
			return storageError{fmt.Errorf("read a file: %w", err)}
		}
		if _, err := to.Write(dataFrame(frame[:frameHeader+len(chunk)])); err != nil {
			return err
		}
		size -= int64(len(chunk))
	}
	return nil
}

// create begins a file that the script returns.
func (s *fileServer) create(ctx context.Context, body []byte) error {
	if err := s.finish(); err != nil {
		return err
	}
	var r createRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("decode a new file: %w", err)
	}
	s.created++
	if s.files.Storage == nil || s.created > MaxCreated || len(r.Name) > MaxFileName || len(r.Type) > MaxFileName {
		return errors.New("the child exceeds the limit of files")
	}
	writer, err := s.files.Storage.Create(ctx, r.Name, r.Type)
	if err != nil {
		return storageError{err}
	}
	s.current = writer
	return nil
}

func (s *fileServer) write(data []byte) error {
	if s.current == nil {
		return errors.New("the child sends bytes of no file")
	}
	if _, err := s.current.Write(data); err != nil {
		return storageError{err}
	}
	return nil
}

func (s *fileServer) finish() error {
	if s.current == nil {
		return nil
	}
	err := s.current.Finish()
	s.abort()
	if err != nil {
		return storageError{err}
	}
	return nil
}

// abort discards the file that is being created.
func (s *fileServer) abort() {
	if s.current != nil {
		s.current.Abort()
		s.current = nil
	}
}
