package integration

import (
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/expr"
)

// variables are the names that templates in one part of a manifest can read.
type variables struct {
	connection []string
	secrets    []string
	appSecrets []string // of OAuth apps, which only verifications read
	unchecked  []string // of connection: those that can have any characters
	hasToken   bool
	consent    bool
}

func (v variables) scope(more map[string][]string) *expr.Scope {
	roots := map[string][]string{"connection": v.connection}
	maps.Copy(roots, more)
	return expr.NewScope(roots)
}

// applyScope returns the scope of apply, the only place that reads secrets.
func (v variables) applyScope() *expr.Scope {
	roots := map[string][]string{"secret": v.secrets}
	if v.hasToken {
		roots["token"] = nil
	}
	return v.scope(roots)
}

func (v variables) learnScope() *expr.Scope {
	roots := map[string][]string{"test": nil}
	if v.hasToken {
		roots["token"] = nil
	}
	if v.consent {
		roots["callback"] = nil
	}
	return v.scope(roots)
}

func (v *variables) add(fields []Field, learned map[string]string) {
	if v.connection == nil {
		v.connection, v.secrets = []string{}, []string{} // no names, not any names
	}
	for _, f := range fields {
		if f.Secret {
			v.secrets = append(v.secrets, f.Name)
			continue
		}
		v.connection = append(v.connection, f.Name)
		if !f.isChecked() {
			v.unchecked = append(v.unchecked, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(learned)) {
		if name == Label || name == Account {
			continue
		}
		v.connection = append(v.connection, name)
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			v.unchecked = append(v.unchecked, name)
		}
	}
	slices.Sort(v.connection)
	v.connection = slices.Compact(v.connection)
}

// sharedVariables returns the names that templates outside of an entry of auth can
// read: those of all entries, whose variables are unset in the other ones.
func (p *parser) sharedVariables(m *manifest, fields [][]Field) variables {
	var out variables
	for i, a := range m.Connection.Auth {
		out.add(slices.Concat(p.fields, fields[i]), a.learned(m))
		for _, f := range a.AppFields {
			if f.value.Secret {
				out.appSecrets = append(out.appSecrets, f.name)
			}
		}
		k, _ := findKind(a.Kind)
		out.hasToken = out.hasToken || k.hasToken
		out.consent = out.consent || a.AuthorizeURL != ""
	}
	return out
}

// authVariables returns the names that templates of an entry of auth can read.
func (p *parser) authVariables(m *manifest, a *manifestAuth, fields []Field) variables {
	k, _ := findKind(a.Kind)
	out := variables{hasToken: k.hasToken, consent: a.AuthorizeURL != ""}
	out.add(slices.Concat(p.fields, fields), a.learned(m))
	return out
}

func (a *manifestAuth) learned(m *manifest) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m.Connection.Learn)
	maps.Copy(out, a.Learn)
	return out
}
