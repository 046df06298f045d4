package api

import (
	"context"
	"errors"
	"io"

	"github.com/stepmill/stepmill/internal/file"
)

// fileContent is a file as http.ServeContent reads it.
type fileContent struct {
	ctx    context.Context
	files  *file.Service
	file   file.File
	reader io.ReadCloser // nil: not open
	at     int64         // where the reader is
	offset int64         // of the next read
	err    error         // of a read
}

// probe opens the file, or only its start if a part is asked for.
func (c *fileContent) probe(part bool) error {
	length := c.file.Size
	if part {
		length = 0
	}
	reader, err := c.files.OpenFile(c.ctx, c.file, 0, length)
	if err != nil {
		return err
	}
	if part {
		return reader.Close()
	}
	c.reader = reader
	return nil
}

// Seek implements io.Seeker.
func (c *fileContent) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.file.Size
	}
	if offset < 0 || offset > c.file.Size {
		return 0, errors.New("seek outside of the file")
	}
	c.offset = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *fileContent) Read(p []byte) (n int, err error) {
	if c.reader == nil || c.at != c.offset {
		c.close()
		if c.reader, err = c.files.OpenFile(c.ctx, c.file, c.offset, c.file.Size-c.offset); err != nil {
			c.err = err
			return 0, err
		}
	}
	n, err = c.reader.Read(p)
	c.offset += int64(n)
	c.at = c.offset
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (c *fileContent) close() {
	if c.reader != nil {
		_ = c.reader.Close()
		c.reader = nil
	}
}
