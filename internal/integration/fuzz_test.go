package integration_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

// FuzzParse checks that a manifest is either rejected with its problems, or that
// everything in it can be rendered.
func FuzzParse(f *testing.F) {
	f.Add([]byte(shop))
	files, err := fs.Glob(integrations.Files, "*/integration.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(integrations.Files, file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		i, err := integration.Parse(text, func(string) (*integration.Integration, bool) { return nil, false })
		if err != nil {
			if problems, ok := errors.AsType[integration.Errors](err); !ok || len(problems) == 0 {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		vars := map[string]string{}
		for _, a := range i.Connection.Auth {
			for _, field := range i.Fields(&a) {
				vars[field.Name] = field.Example
				_ = field.Check(field.Default)
			}
		}
		env := integration.Env{Connection: vars, Test: map[string]any{}, Token: "t"}
		_, _ = i.Hosts(vars)
		for _, a := range i.Connection.Auth {
			if a.Test == nil || a.Learn[integration.Label].IsZero() {
				t.Fatal("an entry has no test or no label")
			}
			_, _ = i.Render(a.Test, env)
			_, _ = a.TokenURL.URL(env)
			for _, template := range a.Learn {
				_, _, _ = template.Text(env)
			}
		}
	})
}
