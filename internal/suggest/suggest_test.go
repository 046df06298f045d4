package suggest_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	candidates := []string{"state", "name", "description", "steps"}
	for name, want := range map[string]string{
		"stat": "state", "State": "state", "nmae": "name", "naem": "name", "nam": "name", "Na-me": "name", "step": "steps",
		"descripton": "description", "zzz": "", "": "",
	} {
		if got := suggest.Nearest(name, candidates); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := suggest.Hint("stat", candidates); got != ` (did you mean "state"?)` {
		t.Errorf("got %q", got)
	}
	if got := suggest.Hint("zzz", candidates); got != "" {
		t.Errorf("got %q", got)
	}
}
