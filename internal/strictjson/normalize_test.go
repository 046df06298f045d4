package strictjson_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/strictjson"
)

func TestNormalizeStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                             `{}`,
		`{"a": [1.0e2, true, null]}`:     `{"a": [1.0e2, true, null]}`,
		`{"\u0061\"": "\u0008\/\u00e9"}`: `{"a\"": "\b/é"}`,
		`["\\", "\\\"", "\ud83d\ude00"]`: `["\\", "\\\"", "😀"]`,
		`"\u003c\u2028\n"`:               `"\u003c\u2028\n"`,
	} {
		got, err := strictjson.NormalizeStrings([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
		if again, err := strictjson.NormalizeStrings(got); err != nil || string(again) != string(got) {
			t.Errorf("%s: then %s, %v", got, again, err)
		}
	}
}
