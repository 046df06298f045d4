package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, test := range map[string]struct {
		output string
		limit  int
		want   string
	}{
		"short output is unchanged":            {`{"status":500,"body":{"a":1}}`, 29, `{"status":500,"body":{"a":1}}`},
		"text is cut at the end":               {`{"status":500,"body":"` + long + `"}`, 60, `{"body":"xxxxxxxxxxxxxxx`},
		"other values become cut JSON text":    {`{"status":500,"body":{"a":"` + long + `"}}`, 60, `{"body":"{\"a\":\"xxxxx`},
		"escapes count":                        {`{"body":"` + strings.Repeat(`\u0001`, 1000) + `"}`, 60, `{"body":"\u0001\u0001`},
		"characters are not split":             {`{"body":"` + strings.Repeat("é", 1000) + `"}`, 60, `{"body":"éééééé`},
		"the largest member is cut first":      {`{"body":"` + long + `","headers":"` + strings.Repeat("h", 20) + `"}`, 90, `{"body":"xxxxx`},
		"members are shortened until they fit": {`{"body":"` + long + `","headers":"` + long + long + `"}`, 80, `{"body":"xxxxx`},
		"nil if it cannot be shortened enough": {`{"a":"` + long + `"}`, 10, ``},
	} {
		got := string(shorten(json.RawMessage(test.output), test.limit))
		if len(got) > test.limit || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: got %s (%d bytes)", name, got, len(got))
			continue
		}
		var members map[string]any
		if got != "" && json.Unmarshal([]byte(got), &members) != nil {
			t.Errorf("%s: %s is not JSON", name, got)
		}
		if shortened := got != "" && got != test.output; shortened && members["truncated"] != true {
			t.Errorf("%s: %s is not marked as truncated", name, got)
		}
	}
}
