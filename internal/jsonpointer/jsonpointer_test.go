package jsonpointer_test

import (
	"slices"
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
		if got := jsonpointer.Split(want); !slices.Equal(got, members) {
			t.Errorf("split %q: got %q, want %q", want, got, members)
		}
	}
}
