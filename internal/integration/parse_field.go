package integration

import (
	"regexp"
	"slices"
	"strconv"
)

func (p *parser) parseFields(pointer string, fields manifestFields) []Field {
	var out []Field
	for _, f := range fields {
		out = append(out, p.field(at(pointer, f.name), f.name, f.value))
	}
	return out
}

func (p *parser) field(pointer, name string, f manifestField) Field {
	out := Field{
		Name: name, Title: f.Title, Help: f.Help, Secret: f.Secret, Optional: f.Optional, Default: f.Default,
		Pattern: f.Pattern, Format: f.Format, Example: f.Example,
	}
	if !identifier.MatchString(name) {
		p.failf(pointer, "a field's name has lower-case letters, digits and underscores and starts with a letter")
	}
	if name == Label || name == Account {
		p.failf(pointer, "the name %s is reserved for what the connection learns", name)
	}
	p.require(at(pointer, "title"), f.Title)
	if f.Format != "" {
		p.oneOf(at(pointer, "format"), f.Format, Formats())
	}
	if f.Pattern != "" {
		compiled, err := regexp.Compile(`^(?:` + f.Pattern + `)$`)
		if err != nil {
			p.failf(at(pointer, "pattern"), "is not a regular expression: %v", err)
		}
		out.pattern = compiled
	}
	for i, choice := range f.Enum {
		if p.require(at(pointer, "enum", strconv.Itoa(i)), choice.Value); choice.Label == "" {
			choice.Label = choice.Value
		}
		if out.allows(choice.Value) {
			p.failf(at(pointer, "enum", strconv.Itoa(i)), "repeats %q", choice.Value)
		}
		out.Enum = append(out.Enum, Choice(choice))
	}
	if f.Format == FormatServices && (f.Secret || f.Default+f.Example+f.Pattern != "" || f.Enum != nil) {
		p.failf(pointer, "a field with the format services has neither values of its own nor a default: the integrations that use the connection are its values")
	}
	if f.Secret && (f.Default != "" || f.Enum != nil) {
		p.failf(pointer, "a secret field has no default and no enum")
	}
	p.checkSample(at(pointer, "default"), &out, out.Default)
	p.checkSample(at(pointer, "example"), &out, out.Example)
	return out
}

// checkSample checks a default or an example like a value that was entered.
func (p *parser) checkSample(pointer string, f *Field, value string) {
	if value == "" || p.errs != nil {
		return
	}
	if err := f.Check(value); err != nil {
		p.failf(pointer, "does not fit its own field: it %s", err)
	}
}

// authFields returns the fields of every entry of auth: those of its kind, unless
// it has an apply of its own, with its own fields instead of or after them. Whoever
// connects with client credentials enters the client.
func (p *parser) authFields(m *manifest) [][]Field {
	out := make([][]Field, len(m.Connection.Auth))
	for i, a := range m.Connection.Auth {
		pointer := at("/connection/auth", strconv.Itoa(i), "fields")
		var fields []Field
		if k, _ := findKind(a.Kind); a.Apply == nil {
			fields = slices.Clone(k.fields)
		}
		if a.Kind == OAuth2 && a.AuthorizeURL == "" {
			fields = append(fields, clientFields(false)...)
		}
		for _, own := range p.parseFields(pointer, a.Fields) {
			if slices.ContainsFunc(p.fields, func(f Field) bool { return f.Name == own.Name }) {
				p.failf(at(pointer, own.Name), "the connection has a field of this name: remove one of them")
			}
			if j := slices.IndexFunc(fields, func(f Field) bool { return f.Name == own.Name }); j >= 0 {
				fields[j] = own
			} else {
				fields = append(fields, own)
			}
		}
		out[i] = fields
	}
	return out
}
