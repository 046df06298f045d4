package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/test/lane"
)

func invoice() *expr.File {
	return expr.NewFile(expr.File{ID: "file_1", Name: "invoice.pdf", Type: "application/pdf", Size: 48213, SHA256: "ab12"})
}

func fileEnv() *expr.Env {
	list := expr.NewFile(expr.File{
		ID: "file_2", Name: "rows.ndjson", Type: "application/x-ndjson", Size: 9, SHA256: "cd34",
		List: &expr.FileList{Count: 3, First: []any{1, map[string]any{"a": 2}}},
	})
	return &expr.Env{Trigger: expr.Trigger{Payload: map[string]any{"photo": invoice(), "rows": list, "plain": map[string]any{"$file": "file_1"}}}}
}

func TestFilesInExpressions(t *testing.T) {
	t.Parallel()
	const text = `{"$file":"file_1","name":"invoice.pdf","sha256":"ab12","size":48213,"type":"application/pdf"}`
	for source, want := range map[string]string{
		`type(trigger.payload.photo)`:                                      `"file"`,
		`trigger.files.photo.name`:                                         `"invoice.pdf"`,
		`trigger.payload.photo.name`:                                       `"invoice.pdf"`,
		`trigger.payload.photo["size"] + 1`:                                `48214`,
		`trigger.payload.photo["$file"]`:                                   `"file_1"`,
		`get(trigger.payload.photo, "sha256")`:                             `"ab12"`,
		`trigger.payload.photo.other`:                                      `null`,
		`trigger.payload.photo.count`:                                      `null`,
		`keys(trigger.files)`:                                              `["photo","rows"]`,
		`trigger.payload.rows.count`:                                       `3`,
		`trigger.payload.rows.first[1].a`:                                  `2`,
		`trigger.payload.photo`:                                            text,
		`toJSON(trigger.payload.photo)`:                                    asJSON(t, text),
		`string(trigger.payload.photo)`:                                    asJSON(t, text),
		`trigger.payload.photo == trigger.payload["photo"]`:                `true`,
		`trigger.payload.photo == trigger.payload.rows`:                    `false`,
		`trigger.payload.photo == trigger.payload.plain`:                   `false`,
		`trigger.payload.photo == fromJSON(toJSON(trigger.payload.photo))`: `false`,
		`trigger.payload.photo in [trigger.payload.photo]`:                 `true`,
		`len(uniq([trigger.payload.photo, trigger.payload.photo, trigger.payload.photo["$file"]]))`: `2`,
		`trigger.payload.photo ?? 1`:          text,
		`type(trigger.payload.plain)`:         `"map"`,
		`type({"$file": "file_1"})`:           `"map"`,
		`{"a": 1}[trigger.payload.photo]`:     `null`,
		`map([trigger.payload.photo], .name)`: `["invoice.pdf"]`,
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v, err := p.Eval(fileEnv(), expr.Budget{})
		if err != nil || asJSON(t, v) != want {
			t.Errorf("%s = %s, %v, want %s", source, asJSON(t, v), err, want)
		}
	}
}

func TestFilesAreNotMaps(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`keys(trigger.payload.photo)`:                 "must be a map, got file",
		`len(trigger.payload.photo)`:                  "must be a string, an array or a map, got file",
		`"name" in trigger.payload.photo`:             "in needs an array or a map, got file",
		`{(trigger.payload.photo): 1}`:                "file cannot be a key",
		`map(trigger.payload.photo, #)`:               "expected an array, got file",
		`trigger.payload.photo + "x"`:                 "file",
		`trigger.payload.photo ? 1 : 2`:               "expected true or false, got file",
		`toXML({"a": trigger.payload.photo})`:         "file",
		`toXML({"a": {"@b": trigger.payload.photo}})`: "file",
		`sort([trigger.payload.photo, 1])`:            "cannot sort",
		`trigger.payload.photo[0:1]`:                  "cannot slice file",
		`upper(trigger.payload.photo)`:                "must be a string, got file",
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if v, err := p.Eval(fileEnv(), expr.Budget{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, %v, want an error with %q", source, v, err, want)
		}
	}
}

// What needs the items of a list file says how to read it.
func TestListFilesAreNotArrays(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`map(trigger.payload.rows, #)`, `filter(trigger.payload.rows, # > 1)`, `len(trigger.payload.rows)`, `first(trigger.payload.rows)`,
		`sum(trigger.payload.rows)`, `join(trigger.payload.rows, ",")`, `sort(trigger.payload.rows)`, `1 in trigger.payload.rows`,
		`trigger.payload.rows[0]`, `trigger.payload.rows[-1]`, `get(trigger.payload.rows, 0)`, `trigger.payload.rows[0:1]`, `concat(trigger.payload.rows, [1])`,
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if v, err := p.Eval(fileEnv(), expr.Budget{}); err == nil || !strings.Contains(err.Error(), "a list file: loop over it with foreach, or use its count and its first items") {
			t.Errorf("%s = %v, %v", source, v, err)
		}
	}
}

func TestItemsOfALoop(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`trigger.payload.rows`: "file_2", `[1, 2]`: "2 items", `trigger.payload.missing`: "0 items",
		`trigger.payload.photo`: "expected an array, got file", `{"a": 1}`: "expected an array, got map",
	} {
		p, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		items, list, err := p.EvalItems(fileEnv(), expr.Budget{})
		got := fmt.Sprintf("%d items", len(items))
		if list != nil {
			got = list.ID
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s = %s, want %s", source, got, want)
		}
	}
}

// A file passes through templates and values as what it is.
func TestFilesPassThroughValues(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{
		"file": "${{ trigger.payload.photo }}", "text": "see ${{ trigger.payload.photo.name }}", "list": []any{"${{ trigger.payload.rows }}"}, "constant": invoice(),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := v.Eval(fileEnv(), expr.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/constant", "/file", "/list/0"}, expr.FilePointers(out)); diff != "" {
		t.Error(diff)
	}
	encoded, err := strictjson.Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Eval(fileEnv(), expr.Budget{Result: len(encoded)}); err != nil {
		t.Errorf("the size of the result counts more than its JSON: %v", err)
	}
	if _, err := v.Eval(fileEnv(), expr.Budget{Result: len(encoded) - 1}); err == nil {
		t.Error("the size of the result counts less than its JSON")
	}
}

// anyValue generates values with and without files, and with objects that look like
// files.
func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.SampledFrom([]string{"", "a", "a/b", "a~b", "~01", "$file", "0", "<ü>", "name"})
	files := rapid.Custom(func(t *rapid.T) any {
		f := expr.File{ID: "file_" + text.Draw(t, "id"), Name: text.Draw(t, "name"), Type: "text/plain", Size: int64(rapid.IntRange(0, 9).Draw(t, "size")), SHA256: "ab"}
		if rapid.Bool().Draw(t, "list") {
			f.List = &expr.FileList{Count: 2, First: []any{1, "x"}}
		}
		return expr.NewFile(f)
	})
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(text, func(s string) any { return s }), files,
		rapid.Just[any](map[string]any{"$file": "file_x", "name": "n", "type": "t", "size": 1, "sha256": "s"}))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 3), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(text, anyValue(depth-1), 0, 3), func(object map[string]any) any { return object }))
}

// holdsFile reports whether a value contains a file.
func holdsFile(v any) bool { return len(expr.Files(v)) > 0 }

func TestFilePointersRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		v := anyValue(3).Draw(t, "value")
		encoded, err := strictjson.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := expr.FromJSON(encoded)
		if err != nil || holdsFile(plain) {
			t.Fatalf("decoding %s created a file: %v", encoded, err)
		}
		pointers := expr.FilePointers(v)
		again, err := expr.FromJSONWithFiles(encoded, pointers)
		if err != nil {
			t.Fatal(err)
		}
		same := cmp.Comparer(func(a, b *expr.File) bool {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return string(x) == string(y)
		})
		if diff := cmp.Diff(v, again, same); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(pointers, expr.FilePointers(again)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzFromJSONCreatesNoFile(f *testing.F) {
	f.Add([]byte(`{"$file":"file_1","name":"a","type":"b","size":1,"sha256":"c"}`), "trigger.payload")
	f.Add([]byte(`[{"a":{"$file":"file_1"}}]`), "fromJSON(toJSON(trigger.payload))")
	f.Fuzz(func(t *testing.T, data []byte, source string) {
		v, err := expr.FromJSON(data)
		if err != nil {
			return
		}
		if holdsFile(v) {
			t.Fatalf("decoding %s created a file", data)
		}
		p, err := expr.Compile(source)
		if err != nil {
			return
		}
		if out, err := p.Eval(&expr.Env{Trigger: expr.Trigger{Payload: v}}, small); err == nil && holdsFile(out) {
			t.Fatalf("%s created a file", source)
		}
	})
}

// A mask can replace parts of a reference. It is data then, not a file of no bytes.
func TestMaskedReferencesAreData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"$file":"file_1","name":"a","type":"b","size":"***","sha256":"c"}`,
		`{"$file":"file_1","***":"a","type":"b","size":1,"sha256":"c"}`,
	} {
		v, err := expr.FromJSONWithFiles([]byte(text), []string{""})
		if _, isObject := v.(map[string]any); err != nil || !isObject {
			t.Errorf("%s becomes %T, %v", text, v, err)
		}
	}
}
