package jsonpointer_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for want, members := range map[string][]string{
		"":            nil,
		"/":           {""},
		"/steps/0/id": {"steps", "0", "id"},
		"/a~1b/c~0d":  {"a/b", "c~d"},
		"/~01":        {"~1"},
	} {
		if got := jsonpointer.Of(members...); got != want {
			t.Errorf("%q: got %q, want %q", members, got, want)
		}
	}
}
