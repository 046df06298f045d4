// Package actiontest has what tests of actions use in place of the engine.
package actiontest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

// Files keeps files in memory. Tests read its fields when no call is in progress.
type Files struct {
	// Limit is the most bytes that a file may have.
	Limit int
	// Content has the finished files by id.
	Content map[string][]byte
	// Unclosed counts the readers that are open, Aborted the files that were discarded.
	Unclosed int
	Aborted  int

	mu sync.Mutex
}

// NewFiles returns files of up to 1 MiB.
func NewFiles() *Files { return &Files{Limit: 1 << 20, Content: map[string][]byte{}} }

// Add stores a file and returns its reference.
func (m *Files) Add(name, mediaType, content string) *expr.File {
	w := &writer{of: m, f: action.NewFile{Name: name, Type: mediaType}, data: []byte(content)}
	f, _ := w.Finish() // never fails
	return f
}

// Create implements action.Files.
func (m *Files) Create(_ context.Context, f action.NewFile) (action.FileWriter, error) {
	return &writer{of: m, f: f}, nil
}

// Open implements action.Files.
func (m *Files) Open(_ context.Context, f *expr.File, offset int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.Content[f.ID]
	if !ok {
		return nil, &action.Failure{Code: "file_not_found", Message: "there is no such file"}
	}
	m.Unclosed++
	return &reader{Reader: bytes.NewReader(content[offset:]), of: m}, nil
}

type reader struct {
	io.Reader
	of   *Files
	once sync.Once
}

func (r *reader) Close() error {
	r.once.Do(func() {
		r.of.mu.Lock()
		defer r.of.mu.Unlock()
		r.of.Unclosed--
	})
	return nil
}

type writer struct {
	of   *Files
	f    action.NewFile
	data []byte
	done bool
}

func (w *writer) Write(p []byte) (int, error) {
	if len(w.data)+len(p) > w.of.Limit {
		return 0, &action.Failure{Code: "file_too_large", Message: "the file is too large"}
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *writer) Finish() (*expr.File, error) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.done = true
	sum := sha256.Sum256(w.data)
	id := fmt.Sprintf("file_%d", len(w.of.Content)+1)
	w.of.Content[id] = w.data
	return expr.NewFile(expr.File{ID: id, Name: w.f.Name, Type: w.f.Type, Size: int64(len(w.data)), SHA256: hex.EncodeToString(sum[:]), List: w.f.List}), nil
}

func (w *writer) Abort() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if !w.done {
		w.done = true
		w.of.Aborted++
	}
}
