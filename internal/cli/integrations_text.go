package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/app"
)

// textWidth is the width of text that is not a table.
const textWidth = 80

func integrationText(i app.Integration) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s)\n\n", i.Name, i.ID)
	line := func(label, text string) {
		out.WriteString(wrap(fmt.Sprintf("%-12s", label), text))
	}
	line("Category", i.Category)
	line("Docs", i.Docs)
	if i.Connection != i.ID {
		line("Connection", "one of "+i.Connection)
	}
	line("Hosts", strings.Join(i.Hosts, ", "))
	out.WriteString("\nWays to connect\n")
	for _, a := range i.Auth {
		fmt.Fprintf(&out, "  %s (%s)\n", a.Label, a.ID)
		if a.Help != "" {
			out.WriteString(wrap("      ", a.Help))
		}
	}
	if len(i.Operations) == 0 {
		out.WriteString("\nThere are no operations yet. http.request and graphql.request can use its connections.\n")
		return out.String()
	}
	out.WriteString("\nOperations (* is required)\n")
	for _, o := range i.Operations {
		fmt.Fprintf(&out, "  %s: %s\n", o.Action, o.Title)
		if inputs := inputList(o.Inputs); inputs != "" {
			out.WriteString(wrap("      ", inputs))
		}
	}
	if len(i.Triggers) > 0 {
		out.WriteString("\nTriggers (* is required)\n")
	}
	for _, t := range i.Triggers {
		fmt.Fprintf(&out, "  %s: %s\n", t.Type, t.Title)
		if inputs := inputList(t.Inputs); inputs != "" {
			out.WriteString(wrap("      ", inputs))
		}
	}
	fmt.Fprintf(&out, "\n`stepmill integrations show %s` has more about an operation.\n", i.Operations[0].Action)
	return out.String()
}

// inputList lists inputs with their types, without the members of objects.
func inputList(inputs []app.IntegrationInput) string {
	var out []string
	for _, in := range inputs {
		if strings.Contains(in.Name, ".") {
			continue
		}
		name := in.Name
		if in.Required {
			name += "*"
		}
		out = append(out, name+" "+in.Type)
	}
	return strings.Join(out, ", ")
}

func operationText(o app.IntegrationOperation) string {
	return headText(o.Title, o.Action, o.Summary, o.Deprecated) + inputsText("Input", o.Inputs) +
		"\nExample of a step\n" + indent("  ", o.Example)
}

func triggerText(t app.IntegrationTrigger) string {
	return headText(t.Title, t.Type, t.Summary, t.Deprecated) + wrap("", t.Source()) +
		inputsText("Settings", t.Inputs) + "\nExample of a trigger\n" + indent("  ", t.Example)
}

func headText(title, name, summary string, deprecated *app.Deprecation) string {
	out := fmt.Sprintf("%s (%s)\n", title, name)
	if summary != "" {
		out += wrap("", summary)
	}
	if deprecated != nil {
		out += wrap("", "Deprecated: use "+deprecated.Use+".")
	}
	return out
}

func inputsText(heading string, inputs []app.IntegrationInput) string {
	var out strings.Builder
	if len(inputs) > 0 {
		out.WriteString("\n" + heading + "\n")
	}
	for _, in := range inputs {
		words := []string{in.Type}
		if in.Required {
			words = append(words, "required")
		}
		fmt.Fprintf(&out, "  %s: %s\n", in.Name, strings.Join(words, ", "))
		sentences := []string{in.Title + "."}
		for _, note := range in.Notes {
			sentences = append(sentences, note.String())
		}
		out.WriteString(wrap("      ", strings.Join(sentences, " ")))
	}
	return out.String()
}

// wrap breaks text into lines. The first begins with the prefix, and the others with as
// many spaces. A word is never broken.
func wrap(prefix, text string) string {
	var out strings.Builder
	line, begun := prefix, false
	for word := range strings.FieldsSeq(text) {
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth {
			out.WriteString(line + "\n")
			line, begun = strings.Repeat(" ", utf8.RuneCountInString(prefix)), false
		}
		if begun {
			line += " "
		}
		line += word
		begun = true
	}
	return out.String() + strings.TrimRight(line, " ") + "\n"
}

func indent(prefix, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(prefix + line)
	}
	return out.String()
}
