package expr

import "slices"

// Refs lists what an expression reads. It is known without evaluating it.
type Refs struct {
	// Steps, Secrets and Vars are literal names, as in steps.get or vars["region"],
	// each once per expression, in order of appearance.
	Steps   []Ref
	Secrets []Ref
	Vars    []Ref
	// Links are the ids of steps whose links are read.
	Links []Ref
	// Random are the functions called whose results depend on Env.Seed.
	Random []Ref
	// AllSteps and AllVars report that steps or vars is also used with a computed
	// name, or as a whole.
	AllSteps bool
	AllVars  bool
	// Item and Index report that the expression needs a foreach around it.
	Item  bool
	Index bool
	// Previous reports that the expression needs a repeat around it.
	Previous bool
	// Response and Cursor report that the expression needs a trigger that polls.
	Response bool
	Cursor   bool
	// Version reports that the expression reads workflow.version, directly or as
	// part of workflow.
	Version bool
	// Words are the names, fields and functions of the language that are used, each
	// once: see [Vocabulary].
	Words []string
}

// Ref is a name with its position: see the fields of [Error].
type Ref struct {
	Name    string
	Line    int
	Column  int
	Offset  int
	Pointer string
}

// And returns the references of both.
func (r Refs) And(o Refs) Refs {
	r.Steps, r.Secrets, r.Vars, r.Links, r.Random = slices.Clip(r.Steps), slices.Clip(r.Secrets), slices.Clip(r.Vars), slices.Clip(r.Links), slices.Clip(r.Random)
	r.Words = slices.Clip(r.Words)
	r.merge(o)
	return r
}

func (r *Refs) merge(o Refs) {
	r.Steps = append(r.Steps, o.Steps...)
	r.Secrets = append(r.Secrets, o.Secrets...)
	r.Vars = append(r.Vars, o.Vars...)
	r.Links = append(r.Links, o.Links...)
	r.Random = append(r.Random, o.Random...)
	r.AllSteps = r.AllSteps || o.AllSteps
	r.AllVars = r.AllVars || o.AllVars
	r.Item = r.Item || o.Item
	r.Index = r.Index || o.Index
	r.Previous = r.Previous || o.Previous
	r.Response = r.Response || o.Response
	r.Cursor = r.Cursor || o.Cursor
	r.Version = r.Version || o.Version
	for _, word := range o.Words {
		r.addWord(word)
	}
}

func (r *Refs) addWord(word string) {
	if !slices.Contains(r.Words, word) {
		r.Words = append(r.Words, word)
	}
}

// within returns a copy of r whose references have the pointer.
func (r Refs) within(pointer string) Refs {
	mark := func(refs []Ref) []Ref {
		var out []Ref
		for _, ref := range refs {
			ref.Pointer = pointer
			out = append(out, ref)
		}
		return out
	}
	r.Steps, r.Secrets, r.Vars, r.Links, r.Random = mark(r.Steps), mark(r.Secrets), mark(r.Vars), mark(r.Links), mark(r.Random)
	return r
}

func addRef(refs []Ref, name string, at position) []Ref {
	for _, r := range refs {
		if r.Name == name {
			return refs
		}
	}
	return append(refs, Ref{Name: name, Line: at.line, Column: at.column, Offset: at.offset})
}
