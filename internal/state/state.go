// Package state owns keys: small values that runs and people keep between runs, each
// under a name in a workflow or in the whole workspace. It does not own tables
// (table), nor how keys are stored (store).
package state

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
)

// Key is a stored value with its name.
type Key struct {
	Name      string
	Value     json.RawMessage // compact
	Files     []string        // the JSON pointers of the references to files inside Value
	ExpiresAt *time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Scope says which keys an operation is about, within which limits and when. A key
// that has expired at that time does not exist.
type Scope struct {
	WorkspaceID string
	WorkflowID  string // empty: the keys of the workspace
	Plan        auth.Plan
	At          time.Time
}

// Set stores a value under a name.
type Set struct {
	Name     string
	Value    json.RawMessage
	Files    []string // as in Key; only a step has references
	Expires  *time.Time
	IfAbsent bool // leave a key that exists as it is
	// KeepFiles means that a reference which the key has stays one where the new value
	// repeats it. See KeptFiles.
	KeepFiles bool
}

// Stored is the result of a Set or an Increment. Without IfAbsent, Set is true.
type Stored struct {
	Key     Key
	Created bool
	Set     bool
}

// Output is the result of a Set or an Increment as a step outputs it.
type Output struct {
	Set       bool            `json:"set"`
	Created   bool            `json:"created"`
	Value     json.RawMessage `json:"value"`
	ExpiresAt *string         `json:"expires_at"`
}

// Output returns the result as a step outputs it.
func (s Stored) Output() Output {
	return Output{Set: s.Set, Created: s.Created, Value: s.Key.Value, ExpiresAt: clock.FormatPtr(s.Key.ExpiresAt)}
}

// FilePointers returns the JSON pointers of the references to files in the output.
func (s Stored) FilePointers() []string {
	var pointers []string
	for _, pointer := range s.Key.Files {
		pointers = append(pointers, "/value"+pointer)
	}
	return pointers
}

// Increment adds By, or 1, to a number. A key that does not exist counts as zero. The
// expiry of a key that exists does not change.
type Increment struct {
	Name    string
	By      json.RawMessage // nil: 1
	Expires *time.Time      // of a new key
}

// Delete deletes a key.
type Delete struct{ Name string }

// Deleted is the result of a Delete as a step outputs it.
type Deleted struct {
	Deleted bool `json:"deleted"`
}

// Operation is an operation that changes a key: a Set, Increment or Delete.
type Operation interface{ changesKey() }

func (Set) changesKey()       {}
func (Increment) changesKey() {}
func (Delete) changesKey()    {}

// Write is an operation with its scope. It holds everything that the result depends
// on apart from the keys, so that repeating it is the same operation.
type Write struct {
	Scope Scope
	Op    Operation
}

// Store persists keys. Each method is one transaction. Writes return a fault and
// change nothing if the workflow does not exist, a limit of the plan would be exceeded
// or the value to increment is not a number.
type Store interface {
	// GetKey returns nil if there is no such key.
	GetKey(ctx context.Context, scope Scope, name string) (*Key, error)
	// StateKeys is ordered by name.
	StateKeys(ctx context.Context, scope Scope, page paging.Request) (paging.Page[Key], error)
	SetKey(ctx context.Context, scope Scope, op Set) (Stored, error)
	IncrementKey(ctx context.Context, scope Scope, op Increment) (Stored, error)
	DeleteKey(ctx context.Context, scope Scope, name string) (deleted bool, err error)
}

const (
	// MaxValue is the maximum size of a value in bytes.
	MaxValue = 64 << 10
	// MaxExpiry is the longest time after which a key can expire.
	MaxExpiry = 10 * 365 * 24 * time.Hour
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@+=,~-]{0,199}$`)

// CheckName checks the name of a key.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fault.New(fault.InvalidRequest,
			"the key must start with a letter, a digit or _ and have at most 200 characters a-z, A-Z, 0-9 and _ . : @ + = , ~ -")
	}
	return nil
}

// NotFound returns the error for a key that does not exist.
func NotFound(name string) error {
	return fault.New(fault.StateKeyNotFound, "there is no key %q, or it has expired", name)
}

// Compact checks a value and removes insignificant white space.
func Compact(value json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	if strictjson.Check(value) != nil || json.Compact(&out, value) != nil {
		return nil, fault.Field("/value", "is not JSON")
	}
	text, err := strictjson.NormalizeStrings(out.Bytes())
	if err == nil && len(text) > MaxValue {
		err = fault.Field("/value", "must have at most %d bytes", MaxValue)
	}
	return text, err
}

// Sum returns the value of a key after an increment.
func Sum(k *Key, by json.RawMessage) (json.RawMessage, error) {
	if k == nil {
		return table.Sum(nil, by)
	}
	return table.Sum(k.Value, by)
}

// Size returns what a key counts towards the limit of stored bytes.
func Size(name string, value json.RawMessage) int { return len(name) + len(value) }

// Service manages the keys of workspaces.
type Service struct{ store Store }

// NewService returns a service that uses the given store.
func NewService(store Store) *Service { return &Service{store: store} }

func scopeOf(actor auth.Actor, workflowID string) (Scope, error) {
	if workflowID != "" && !uid.Valid(uid.Workflow, workflowID) {
		return Scope{}, NoWorkflow(workflowID)
	}
	return Scope{WorkspaceID: actor.Workspace.ID, WorkflowID: workflowID, Plan: actor.Workspace.Plan, At: clock.Now()}, nil
}

// NoWorkflow returns the error for a workflow that does not exist.
func NoWorkflow(id string) error {
	return fault.New(fault.WorkflowNotFound, "there is no workflow %q", id)
}

// Get returns a key.
func (s *Service) Get(ctx context.Context, actor auth.Actor, workflowID, name string) (Key, error) {
	scope, err := scopeOf(actor, workflowID)
	if err != nil {
		return Key{}, err
	}
	if CheckName(name) != nil {
		return Key{}, NotFound(name)
	}
	found, err := s.store.GetKey(ctx, scope, name)
	return fault.Found(found, err, NotFound, name)
}

// List lists the keys of a workflow or of the workspace by name.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, page paging.Request) (paging.Page[Key], error) {
	scope, err := scopeOf(actor, workflowID)
	if err != nil {
		return paging.Page[Key]{}, err
	}
	return s.store.StateKeys(ctx, scope, page)
}

// Put stores a value. expiresIn is a duration, or empty for a key that does not
// expire.
func (s *Service) Put(ctx context.Context, actor auth.Actor, workflowID string, op Set, expiresIn string) (Stored, error) {
	scope, err := scopeOf(actor, workflowID)
	if err != nil {
		return Stored{}, err
	}
	if err := CheckName(op.Name); err != nil {
		return Stored{}, err
	}
	if op.Value, err = Compact(op.Value); err != nil {
		return Stored{}, err
	}
	if op.Expires, err = Expiry("/expires_in", expiresIn, scope.At); err != nil {
		return Stored{}, err
	}
	op.KeepFiles = true
	return s.store.SetKey(ctx, scope, op)
}

// KeptFiles returns the JSON pointers of the references of a key that a new value
// repeats, unchanged and in the same place. Whoever edits a value through the API sends
// all of it, and must not lose the files in it; a reference that the key does not have
// remains plain data.
func KeptFiles(of Key, value json.RawMessage) ([]string, error) {
	var kept []string
	for _, pointer := range of.Files {
		was, err := fileAt(of.Value, pointer)
		if err != nil {
			return nil, err
		}
		is, err := fileAt(value, pointer)
		if err == nil && was != nil && reflect.DeepEqual(was, is) {
			kept = append(kept, pointer)
		}
	}
	return kept, nil
}

// fileAt returns the reference at a JSON pointer, or nil.
func fileAt(value json.RawMessage, pointer string) (*expr.File, error) {
	v, err := expr.FromJSONWithFiles(value, []string{pointer})
	if err != nil {
		return nil, err
	}
	for _, f := range expr.Files(v) {
		return f, nil
	}
	return nil, nil
}

// Expiry returns when a key expires that is set at a time.
func Expiry(at, expiresIn string, now time.Time) (*time.Time, error) {
	if expiresIn == "" {
		return nil, nil
	}
	d, err := clock.ParseDuration(expiresIn)
	switch {
	case err != nil:
		return nil, fault.Field(at, "%s", err)
	case d > MaxExpiry:
		return nil, fault.Field(at, "must be at most 3650d")
	}
	expires := now.Add(d)
	return &expires, nil
}

// Delete deletes a key.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, workflowID, name string) error {
	scope, err := scopeOf(actor, workflowID)
	if err != nil {
		return err
	}
	if CheckName(name) != nil {
		return NotFound(name)
	}
	deleted, err := s.store.DeleteKey(ctx, scope, name)
	if err == nil && !deleted {
		err = NotFound(name)
	}
	return err
}
