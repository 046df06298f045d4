package workflow

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Warnings returns what is probably a mistake, although the workflow can be activated all the
// same: what it still has from an example, and switches that may take no path.
func (d Definition) Warnings() []Problem {
	out := d.placeholders()
	warnOfSwitches(d.Steps, "/steps", &out)
	return out
}

// warnOfSwitches adds a warning for each switch that takes no path if no condition is true.
func warnOfSwitches(steps []Step, at string, out *[]Problem) {
	for i, step := range steps {
		here := at + "/" + strconv.Itoa(i)
		warnOfSwitches(step.Steps, here+"/steps", out)
		if step.Uses != switchAction {
			continue
		}
		input, err := decodeInput(step.With)
		if _, has := input["else"]; err != nil || has || input["match"] == "all" || endsWithTrue(input["paths"]) {
			continue
		}
		*out = append(*out, Problem{
			Pointer: here + "/with", Message: fmt.Sprintf("Step %s takes no path if no condition is true", step.Title()),
			Hint: "add else, or a last path whose condition is true",
		})
	}
}

// endsWithTrue reports whether the last path of a switch is always taken if no other is.
func endsWithTrue(paths any) bool {
	list, _ := paths.([]any)
	if len(list) == 0 {
		return false
	}
	last, _ := list[len(list)-1].(map[string]any)
	return last["when"] == true || last["when"] == "true"
}

// placeholders returns a warning for each address below example.com, example.net and
// example.org, where nobody can be reached (RFC 2606). A definition that cannot be read has
// none.
func (d Definition) placeholders() []Problem {
	text, err := Definition{Triggers: d.Triggers, Steps: d.Steps}.Canonical()
	if err != nil || !bytes.Contains(bytes.ToLower(text), []byte("example.")) {
		return nil
	}
	read, err := strictjson.DecodeAny(text)
	if err != nil {
		return nil
	}
	var out []Problem
	root, _ := read.(map[string]any)
	warnOf(root["triggers"], "Trigger", "/triggers", &out)
	warnOf(root["steps"], "Step", "/steps", &out)
	return out
}

// warnOf adds the warnings about a list of triggers or steps.
func warnOf(list any, kind, at string, out *[]Problem) {
	items, _ := list.([]any)
	for i, item := range items {
		one, _ := item.(map[string]any)
		name, _ := one["name"].(string)
		if name == "" {
			name, _ = one["id"].(string)
		}
		here := at + "/" + strconv.Itoa(i)
		for _, member := range slices.Sorted(maps.Keys(one)) {
			switch member {
			case "id", "name", "uses", "type", "needs":
			case "steps":
				warnOf(one[member], kind, here+"/steps", out)
			default:
				warnIn(one[member], kind+" "+name, here+jsonpointer.Of(member), out)
			}
		}
	}
}

// warnIn adds a warning for each string within a value that has a placeholder address.
func warnIn(value any, owner, at string, out *[]Problem) {
	switch v := value.(type) {
	case string:
		if address := placeholderIn(v); address != "" {
			*out = append(*out, Problem{
				Pointer: at, Message: fmt.Sprintf("%s still has the placeholder address %s", owner, address), Hint: "replace it with your own",
			})
		}
	case []any:
		for i, item := range v {
			warnIn(item, owner, at+"/"+strconv.Itoa(i), out)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			warnIn(v[name], owner, at+jsonpointer.Of(name), out)
		}
	}
}

var hostName = regexp.MustCompile(`[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)

// placeholderIn returns the first placeholder address in a text, or "".
func placeholderIn(text string) string {
	for _, host := range hostName.FindAllString(text, -1) {
		lower := "." + strings.ToLower(host)
		for _, domain := range []string{".example.com", ".example.net", ".example.org"} {
			if strings.HasSuffix(lower, domain) {
				return host
			}
		}
	}
	return ""
}
