package authoring

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// Lint returns the problems of all integrations, ordered by file and place, and how many
// integrations there are.
func (s *Set) Lint() (problems integration.Errors, count int) {
	for _, one := range s.sources {
		i, found := s.lint(one)
		problems = append(problems, found...)
		if one.manifest != manifestFile {
			continue // it has no tests beside it
		}
		tests, found := one.tests()
		problems = append(problems, found...)
		if i != nil && len(found) == 0 {
			problems = append(problems, one.lintTests(i, tests)...)
		}
		_, found = one.recordings()
		problems = append(problems, found...)
		problems = append(problems, one.lintIcon()...)
	}
	problems.Sort()
	return problems, len(s.sources)
}

// lintTests returns what is wrong with the tests, and which operations have none.
func (s *source) lintTests(i *integration.Integration, tests *replay.Tests) integration.Errors {
	if tests == nil {
		if len(i.Operations()) == 0 {
			return nil // without operations there are no triggers either
		}
		return integration.Errors{s.problemAt("/operations", "have no tests: add the file %s", s.shown(testsFile))}
	}
	out := tests.Check(i).In(s.shown(testsFile))
	for _, pointer := range tests.Untested(i) {
		out = append(out, s.problemAt(pointer, "has no test: add one to %s", s.shown(testsFile)))
	}
	return out
}

// lintIcon returns what is wrong with the icon. Only an integration that is part of the
// product needs one.
func (s *source) lintIcon() integration.Errors {
	text, err := fs.ReadFile(s.files, integration.IconFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.dir != "":
		return nil
	case err != nil:
		return integration.AsErrors(err).In(s.shown(integration.IconFile))
	}
	return integration.CheckIcon(text).In(s.shown(integration.IconFile))
}

func (s *source) problemAt(pointer, format string, args ...any) *integration.Error {
	out := &integration.Error{File: s.shown(s.manifest), Pointer: pointer, Message: fmt.Sprintf(format, args...)}
	if text, err := fs.ReadFile(s.files, s.manifest); err == nil {
		if document, err := strictyaml.Decode(text); err == nil {
			out.Line, out.Column, _ = document.KeyAt(pointer)
		}
	}
	return out
}
