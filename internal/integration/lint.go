package integration

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Lint checks a manifest for its author: like Parse, and also for what is allowed but
// likely to be a mistake. It returns all problems in the order of the file, and the
// integration unless Parse rejects it. If the folder of the manifest is known, it must have
// the id as its name; it can be "".
func Lint(data []byte, folder string, find func(id string) (*Integration, bool)) (*Integration, Errors) {
	d, err := decode(data)
	if err != nil {
		return nil, AsErrors(err)
	}
	p := &parser{document: d.document, text: d.text}
	if folder != "" {
		p.errs = append(p.errs, AsErrors(d.checkFolder(folder))...)
	}
	out := p.compile(&d.manifest, find)
	if p.errs != nil {
		out = nil
	}
	p.lintDefaults()
	p.lintHidden(&d.manifest)
	p.errs.Sort()
	return out, p.errs
}

// noteBare keeps a bare expression for lint.
func (p *parser) noteBare(pointer, source string) {
	if p.bare == nil {
		p.bare = map[string]string{}
	}
	p.bare[pointer] = source
}

// lintDefaults reports expressions in which it is not clear what a ?? applies to.
func (p *parser) lintDefaults() {
	for _, pointer := range slices.Sorted(maps.Keys(p.bare)) {
		p.lintDefault(pointer, p.bare[pointer])
	}
	p.eachText(func(pointer, text string) {
		replaceExpressions(text, func(expression string) string {
			p.lintDefault(pointer, strings.TrimSuffix(strings.TrimPrefix(expression, "${{"), "}}"))
			return ""
		})
	})
}

// eachText calls a function with each text in the manifest, without the names of members,
// and its pointer.
func (p *parser) eachText(look func(pointer, text string)) {
	document, err := strictjson.DecodeAny(p.document.JSON)
	if err != nil {
		return // it has been decoded before
	}
	eachTextIn("", document, look)
}

func eachTextIn(pointer string, value any, look func(pointer, text string)) {
	switch value := value.(type) {
	case string:
		look(pointer, value)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			eachTextIn(at(pointer, name), value[name], look)
		}
	case []any:
		for i, item := range value {
			eachTextIn(at(pointer, strconv.Itoa(i)), item, look)
		}
	}
}

func (p *parser) lintDefault(pointer, expression string) {
	if operator := expr.UnclearDefault(expression); operator != "" {
		p.failf(pointer, "?? applies only to what is right after %q: put it in parentheses with its default, or else everything before the ??", operator)
	}
}

// lintHidden reports operations that are hidden from people, but that no input and no poll
// names.
func (p *parser) lintHidden(m *manifest) {
	named := map[string]bool{}
	for _, o := range m.Operations {
		for _, in := range o.value.Input {
			in.value.addListers(named)
		}
	}
	for _, t := range m.Triggers {
		for _, in := range t.value.Input {
			in.value.addListers(named)
		}
	}
	for _, name := range m.polled() {
		named[name] = true
	}
	for _, o := range m.Operations {
		if o.value.Hidden && !named[o.name] {
			pointer := at("/operations", o.name)
			line, column, _ := p.document.KeyAt(pointer)
			p.errs = append(p.errs, &Error{Line: line, Column: column, Pointer: pointer, Message: "is hidden, and no poll and no options or fields of an input name it: nothing uses it"})
		}
	}
}

// addListers adds the operations that list the values or members of the input.
func (in *manifestInput) addListers(names map[string]bool) {
	names[in.Options], names[in.Fields] = true, true
	for i := range in.Properties.named {
		in.Properties.named[i].value.addListers(names)
	}
	if in.Items != nil {
		in.Items.addListers(names)
	}
}
