package harness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	o := newOutput()
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(o, format+"\n", args...) }
	for i := range 100 {
		write(`{"level":"INFO","msg":"request","path":"/good/%d","status":200,"bytes":1}`, i)
		write(`{"level":"INFO","msg":"request","path":"/bad/%d","status":503,"bytes":1}`, i)
		write(`{"level":"WARN","msg":"warning %d"}`, i)
	}
	write("WARNING: DATA RACE")
	write(`{"level":"INFO","msg":"%s"}`, strings.Repeat("x", 10_000))
	got := o.excerpt(maxRecords)
	lines := strings.Split(got, "\n")
	if len(lines) != 1+maxRecords || lines[0] != "WARNING: DATA RACE" {
		t.Errorf("the excerpt has %d lines and begins with %q", len(lines), lines[0])
	}
	if strings.Contains(got, "/good/") || !strings.Contains(got, "/bad/99") || !strings.Contains(got, "warning 99") {
		t.Errorf("the excerpt has the wrong records:\n%s", got)
	}
	if last := lines[len(lines)-1]; len(last) > maxLine+len("…") || !strings.HasPrefix(last, `{"level":"INFO","msg":"xxx`) {
		t.Errorf("the last line is %q", last)
	}
	if lines := strings.Split(o.excerpt(5), "\n"); len(lines) != 1+5 {
		t.Errorf("a shorter excerpt has %d lines, want 6", len(lines))
	}
}

func TestDefectLines(t *testing.T) {
	t.Parallel()
	const (
		race      = "WARNING: DATA RACE"
		fatal     = "fatal error: concurrent map writes"
		invariant = `{"level":"ERROR","msg":"INVARIANT: a run was lost"}`
		dies      = "panic: runtime error: index out of range"
		recovered = `{"level":"ERROR","msg":"panic in an action","panic":"x"}`
		busy      = `{"level":"ERROR","msg":"cannot claim a run; retrying","error":"unavailable: the store is busy; try again"}`
		said      = `{"level":"INFO","msg":"the payload says panic: x"}`
	)
	o := newOutput()
	for _, line := range []string{race, busy, fatal, said, dies, invariant, recovered} {
		_, _ = fmt.Fprintln(o, line)
	}
	for madeToPanic, want := range map[bool][]string{
		false: {race, fatal, dies, invariant, recovered},
		true:  {race, fatal, invariant},
	} {
		if diff := cmp.Diff(want, o.defectLines(madeToPanic)); diff != "" {
			t.Errorf("made to panic: %t: %s", madeToPanic, diff)
		}
	}
}
