package authoring

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Outcome is the outcome of a test in a file.
type Outcome struct {
	File string
	replay.Result
}

// Report is what the tests of a set have shown.
type Report struct {
	Outcomes []Outcome
	// Problems are those of the files. Integrations with a manifest or tests that are not
	// valid were not tested.
	Problems integration.Errors
}

// Passed returns how many tests have passed, and how many have failed.
func (r *Report) Passed() (passed, failed int) {
	for _, o := range r.Outcomes {
		if o.Problem == "" {
			passed++
		} else {
			failed++
		}
	}
	return passed, failed
}

// Test runs the tests of all integrations. With a filter that is not "", it runs only those
// of the operation or the trigger with this name, such as send_message or
// telegram.send_message; a slash
// and a part of the name of a test can follow.
func (s *Set) Test(ctx context.Context, filter string) (*Report, error) {
	out := &Report{}
	var subjects []string
	for _, one := range s.sources {
		names, err := s.test(ctx, one, filter, out)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, names...)
	}
	subject, _, _ := strings.Cut(filter, "/")
	switch {
	case len(out.Outcomes)+len(out.Problems) > 0:
		return out, nil
	case filter == "":
		return nil, fmt.Errorf("there are no tests: they are in the file %s beside a manifest", testsFile)
	}
	return nil, fmt.Errorf("there is no test %q%s", filter, suggest.Hint(subject, subjects))
}

// test runs the tests of an integration, and returns the names of its operations and triggers.
func (s *Set) test(ctx context.Context, one *source, filter string, out *Report) ([]string, error) {
	i, problems := s.lint(one)
	if i == nil {
		out.Problems = append(out.Problems, problems...)
		return nil, nil
	}
	tests, problems := one.tests()
	recordings, more := one.recordings()
	if problems = slices.Concat(problems, more); len(problems) > 0 {
		out.Problems = append(out.Problems, problems...)
		return nil, nil
	}
	names := append(i.OperationNames(), i.TriggerNames()...)
	if tests == nil {
		return names, nil
	}
	out.Problems = append(out.Problems, tests.Check(i).In(one.shown(testsFile))...)
	pick := func(of, test string) bool { return matches(filter, i.ID, of, test) }
	for _, result := range replay.Run(ctx, s.builtin, i, tests, recordings, pick) {
		out.Outcomes = append(out.Outcomes, Outcome{one.shown(testsFile), result})
	}
	if filter == "" && recordings != nil {
		for _, problem := range recordings.Check(i, tests) {
			out.Problems = append(out.Problems, &integration.Error{File: one.shown(recordingsFile), Message: problem})
		}
	}
	return names, ctx.Err()
}

func matches(filter, id, of, test string) bool {
	name, part, _ := strings.Cut(filter, "/")
	return filter == "" || (name == of || name == id+"."+of) && strings.Contains(test, part)
}
