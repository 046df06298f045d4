package codejs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/codejs"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// memoryFiles keeps files in memory. A limit is the most bytes of a file.
type memoryFiles struct {
	contents map[string]string // by id
	limit    int
	opened   []string
}

func (m *memoryFiles) Open(_ context.Context, f *expr.File, offset int64) (io.ReadCloser, error) {
	m.opened = append(m.opened, f.ID)
	return io.NopCloser(strings.NewReader(m.contents[f.ID][offset:])), nil
}

func (m *memoryFiles) Create(_ context.Context, f action.NewFile) (action.FileWriter, error) {
	return &memoryWriter{files: m, file: f}, nil
}

type memoryWriter struct {
	files *memoryFiles
	file  action.NewFile
	bytes bytes.Buffer
}

func (w *memoryWriter) Write(data []byte) (int, error) {
	if w.files.limit > 0 && w.bytes.Len()+len(data) > w.files.limit {
		return 0, &action.Failure{Code: "file_too_large", Message: "the file is too large"}
	}
	return w.bytes.Write(data)
}

func (w *memoryWriter) Finish() (*expr.File, error) {
	id := "file_new_" + w.file.Name
	w.files.contents[id] = w.bytes.String()
	return expr.NewFile(expr.File{ID: id, Name: w.file.Name, Type: w.file.Type, Size: int64(w.bytes.Len()), SHA256: "…"}), nil
}

func (w *memoryWriter) Abort() {}

func fileWith(id, content string) *expr.File {
	return expr.NewFile(expr.File{ID: id, Name: id + ".txt", Type: "text/plain", Size: int64(len(content)), SHA256: "…"})
}

// runWithFiles runs a script whose input has two files.
func runWithFiles(t *testing.T, runner codejs.Runner, files *memoryFiles, code string) (any, error) {
	t.Helper()
	files.contents = map[string]string{"file_a": "alpha", "file_b": "beta", "file_other": "not given"}
	result, err := codejs.Entry(runner).Action.Run(t.Context(), action.Request{Files: files, Input: map[string]any{
		"code":  code,
		"input": map[string]any{"a": fileWith("file_a", "alpha"), "list": []any{1, fileWith("file_b", "beta"), fileWith("file_a", "alpha")}},
	}})
	return result.Output, err
}

func TestFiles(t *testing.T) {
	t.Parallel()
	runner := realRunner(t)
	a, b := fileWith("file_a", "alpha"), fileWith("file_b", "beta")
	for _, tc := range []struct {
		code   string
		want   any
		opened []string
	}{
		{"return input", map[string]any{"a": a, "list": []any{1, b, a}}, nil},
		{"return [input.a === input.list[2], await input.list[1].text()]", []any{true, "beta"}, []string{"file_b"}},
		{"return JSON.stringify(input)", `{"a":{},"list":[1,{},{}]}`, nil},
		{
			"return [{'$file': 'file_a'}, {'$file': 'file_other', name: 'n', type: 't', size: 1, sha256: '…'}]",
			[]any{map[string]any{"$file": "file_a"}, map[string]any{"$file": "file_other", "name": "n", "type": "t", "size": 1, "sha256": "…"}}, nil,
		},
		{
			"return {old: input.a, made: new File([input.a, '!'], 'n', {type: 'text/csv'})}",
			map[string]any{"old": a, "made": expr.NewFile(expr.File{ID: "file_new_n", Name: "n", Type: "text/csv", Size: 6, SHA256: "…"})},
			[]string{"file_a"},
		},
	} {
		files := &memoryFiles{}
		got, err := runWithFiles(t, runner, files, tc.code)
		if err != nil {
			t.Errorf("%s\n%v", tc.code, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(x, y *expr.File) bool { return cmp.Equal(*x, *y, cmp.AllowUnexported(expr.File{})) })); diff != "" {
			t.Errorf("%s\n%s", tc.code, diff)
		}
		if diff := cmp.Diff(tc.opened, files.opened); diff != "" {
			t.Errorf("%s\n%s", tc.code, diff)
		}
	}
}

// The limits of the plan are the failure of the step.
func TestFileLimitOfThePlan(t *testing.T) {
	t.Parallel()
	_, err := runWithFiles(t, realRunner(t), &memoryFiles{limit: 1000}, "return new File(['x'.repeat(2000)], 'n')")
	if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != "file_too_large" {
		t.Error(err)
	}
}

// forgingRunner is a sandbox that an attacker controls: it knows the marker and names
// any file with it.
type forgingRunner struct {
	fakeRunner
	index string
}

func (f *forgingRunner) Run(_ context.Context, script sandbox.Script) (sandbox.Outcome, error) {
	output, err := json.Marshal([]any{script.Files.Marker + f.index, map[string]any{"$file": "file_other"}})
	return sandbox.Outcome{Output: output}, err
}

func TestForgedFilesStayPlainData(t *testing.T) {
	t.Parallel()
	for _, index := range []string{"2", "-1", "99999999999999999999", "file_other", "", "0x0"} {
		got, err := runWithFiles(t, &forgingRunner{index: index}, &memoryFiles{}, "x")
		if err != nil {
			t.Fatal(err)
		}
		if files := expr.Files(got); len(files) > 0 {
			t.Errorf("%q gave %v", index, files)
		}
	}
	got, err := runWithFiles(t, &forgingRunner{index: "1"}, &memoryFiles{}, "x")
	if err != nil || len(expr.Files(got)) != 1 {
		t.Errorf("%v, %v: the test does not use the protocol", got, err)
	}
}
