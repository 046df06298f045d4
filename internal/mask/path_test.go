package mask_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/mask"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value  string
		paths  []string
		values []string
		hidden string
	}{
		"a member":              {`{"body":{"token":"abcdef","id":7}}`, []string{"body.token"}, []string{"abcdef"}, `{"body":{"id":7,"token":"***"}}`},
		"a missing member":      {`{"body":"text"}`, []string{"body.token", "nothing"}, nil, `{"body":"text"}`},
		"null":                  {`{"body":{"token":null}}`, []string{"body.token"}, nil, `{"body":{"token":null}}`},
		"a member of each item": {`{"items":[{"key":"a1"},{"key":"b2"},{}]}`, []string{"items.key"}, []string{"a1", "b2"}, `{"items":[{"key":"***"},{"key":"***"},{}]}`},
		"lists in lists":        {`{"a":[[{"b":"x"}]]}`, []string{"a.b"}, []string{"x"}, `{"a":[[{"b":"***"}]]}`},
		"a whole object":        {`{"body":{"a":"x","b":[1,true,null]}}`, []string{"body"}, []string{"1", "true", "x"}, `{"body":"***"}`},
		"a number":              {`{"pin":123456}`, []string{"pin"}, []string{"123456"}, `{"pin":"***"}`},
		"a name with a hyphen":  {`{"headers":{"set-cookie":"c=1"}}`, []string{"headers.set-cookie"}, []string{"c=1"}, `{"headers":{"set-cookie":"***"}}`},
		"two paths":             {`{"a":"x","b":"y","c":"z"}`, []string{"a", "c"}, []string{"x", "z"}, `{"a":"***","b":"y","c":"***"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var value any
			if err := json.Unmarshal([]byte(test.value), &value); err != nil {
				t.Fatal(err)
			}
			var paths []mask.Path
			for _, text := range test.paths {
				path, err := mask.ParsePath(text)
				if err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			values := mask.Values(value, paths)
			slices.Sort(values)
			if diff := cmp.Diff(test.values, values); diff != "" {
				t.Error(diff)
			}
			hidden, err := json.Marshal(mask.Hide(value, paths))
			if err != nil || string(hidden) != test.hidden {
				t.Errorf("hidden is %s, %v", hidden, err)
			}
			var same any
			if err := json.Unmarshal([]byte(test.value), &same); err != nil || cmp.Diff(same, value) != "" {
				t.Errorf("the value was changed to %v", value)
			}
		})
	}
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a[0]", "items[*].key", " a", "a .b", "${{ a }}", strings.Repeat("a", 201)} {
		if path, err := mask.ParsePath(text); err == nil {
			t.Errorf("%q is parsed as %q", text, path)
		}
	}
}
