package strictyaml_test

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/strictyaml"
)

func TestAt(t *testing.T) {
	t.Parallel()
	document, err := strictyaml.Decode([]byte(`# a file
name: "Größe"
steps:
  - id: a
    with: {ä: [1, {x: 2}], b/c: 3, "~": 4}
  -
    id: b
    with:
      code: |
        return 1
      empty:
      "": none
layout: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ pointer, value, key string }{
		{"", "2:1", "2:1"},
		{"/name", "2:7", "2:1"},
		{"/steps", "4:3", "3:1"},
		{"/steps/0", "4:5", "4:5"},
		{"/steps/0/id", "4:9", "4:5"},
		{"/steps/0/with", "5:11", "5:5"},
		{"/steps/0/with/ä", "5:15", "5:12"},
		{"/steps/0/with/ä/1/x", "5:23", "5:20"},
		{"/steps/0/with/b~1c", "5:33", "5:28"},
		{"/steps/0/with/~0", "5:41", "5:36"},
		{"/steps/1", "7:5", "7:5"},
		{"/steps/1/with", "9:7", "8:5"},
		{"/steps/1/with/code", "9:13", "9:7"},
		{"/steps/1/with/empty", "11:7", "11:7"},
		{"/steps/1/with/", "12:11", "12:7"},
		{"/steps/1/with/missing", "9:7", "9:7"},
		{"/steps/1/with/code/deeper/still", "9:13", "9:13"},
		{"/steps/2/id", "4:3", "4:3"},
		{"/steps/00", "4:3", "4:3"},
		{"/other", "2:1", "2:1"},
		{"/layout/x", "13:9", "13:9"},
		{"name", "0:0", "0:0"},
	} {
		line, column, ok := document.At(tc.pointer)
		if got := fmt.Sprintf("%d:%d", line, column); got != tc.value || ok != (got != "0:0") {
			t.Errorf("%q is at %s (%t), want %s", tc.pointer, got, ok, tc.value)
		}
		line, column, _ = document.KeyAt(tc.pointer)
		if got := fmt.Sprintf("%d:%d", line, column); got != tc.key {
			t.Errorf("the key %q is at %s, want %s", tc.pointer, got, tc.key)
		}
	}
}
