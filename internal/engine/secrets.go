package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Values reads the values outside of a run that expressions can refer to.
type Values interface {
	// Open decrypts the named secrets. It omits those that do not exist.
	Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error)
	Vars(ctx context.Context, workspaceID string) (map[string]any, error)
}

// Links creates the links of steps that wait for an answer.
type Links interface {
	Link(ctx context.Context, workspaceID, runID, path string) (expr.Link, error)
}

// secrets are the secrets that the program of a run uses, also through connections, and
// the inputs that contain them. They are only held in memory; everything that is stored is masked.
type secrets struct {
	values map[string]string
	// mask masks them and the secrets of the connections that the run uses.
	mask   *mask.Masker
	inputs map[*run.Step]map[string]any // unmasked inputs
	links  map[*run.Step]*mask.Masker   // of the links of steps
	// found are the values in the outputs of steps that have a mask, and foundMask
	// masks them.
	found     map[string]bool
	foundMask *mask.Masker
}

// maxFound limits the values of a run that the masks of its steps select.
const maxFound = 1000

func newSecrets() secrets {
	return secrets{
		inputs: map[*run.Step]map[string]any{}, links: map[*run.Step]*mask.Masker{}, found: map[string]bool{},
	}
}

// hide masks more in everything that is stored from now on.
func (s *secrets) hide(more *mask.Masker) { s.mask = mask.Join(s.mask, more) }

// stepMask masks everything that is stored of a step: secrets and links, then the
// values that masks of steps have selected. Expressions never see the former, but
// they see the latter.
type stepMask struct{ secrets, found *mask.Masker }

func (m stepMask) JSON(raw []byte) []byte { return m.found.JSON(m.secrets.JSON(raw)) }

func (m stepMask) Text(text string) string { return m.found.Text(m.secrets.Text(text)) }

// maskOf returns the mask for everything that is stored of a step.
func (s *secrets) maskOf(step *run.Step) stepMask {
	return stepMask{mask.Join(s.mask, s.links[step]), s.foundMask}
}

// addFound masks values from now on.
func (s *secrets) addFound(values []string) error {
	known := len(s.found)
	for _, value := range values {
		s.found[value] = true
	}
	switch {
	case len(s.found) == known:
		return nil
	case len(s.found) > maxFound:
		return &action.Failure{Code: run.CodeMaskLimit, Message: fmt.Sprintf("the masks of the steps select more than %d different values; select single values instead of whole lists", maxFound)}
	}
	s.foundMask = mask.New(slices.Sorted(maps.Keys(s.found)))
	return nil
}

// check fails if a step refers to a secret that no longer exists.
func (s *secrets) check(p stepRef) error {
	for _, name := range p.compiled().Secrets {
		if _, ok := s.values[name]; !ok {
			return &action.Failure{Code: run.CodeSecretMissing, Message: fmt.Sprintf("secret %q no longer exists", name)}
		}
	}
	return nil
}

// inputMasked reports whether the stored input may differ from the real one. Text
// that happens to equal a secret is masked too.
func (s *secrets) inputMasked(step *run.Step) bool {
	return (s.mask != nil || s.foundMask != nil) && s.inputs[step] == nil && bytes.Contains(step.Input, []byte(mask.Replacement))
}

// render evaluates an input that contains secrets or links. The real input stays in
// memory. If no input is stored yet, it also returns the one to store, in which they
// are masked.
func (s *secrets) render(p stepRef, links map[string]expr.Link) (input map[string]any, masked json.RawMessage, err error) {
	step := p.step()
	s.hideLinks(step, links)
	whole := *p.env
	whole.Links = links
	value, err := p.compiled().Input.Eval(&whole, expr.Budget{})
	if err != nil {
		return nil, nil, err
	}
	input, _ = value.(map[string]any)
	s.inputs[step] = input
	if step.Input != nil {
		return input, nil, nil
	}
	shown := whole
	shown.Secrets = map[string]string{}
	for name := range s.values {
		shown.Secrets[name] = mask.Replacement
	}
	// An expression that only works with the real value is stored as an empty input.
	value, err = p.compiled().Input.Eval(&shown, expr.Budget{})
	if err != nil {
		value = map[string]any{}
	}
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return nil, nil, err
	}
	return input, s.maskOf(step).JSON(encoded), nil
}

// hideLinks masks the links of a step like secrets, because anyone who has a link
// can answer.
func (s *secrets) hideLinks(step *run.Step, links map[string]expr.Link) {
	hidden := make([]string, 0, 2*len(links))
	for _, link := range links {
		hidden = append(hidden, path.Base(link.Page), path.Base(link.Callback))
	}
	s.links[step] = mask.New(hidden)
}

// forget drops what is held of a settled step.
func (s *secrets) forget(step *run.Step) {
	delete(s.inputs, step)
	delete(s.links, step)
}
