package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Somebody who may not use a connection can neither add it to a step or a trigger nor
// change those that use it, but everything around them.
func TestCheckAccess(t *testing.T) {
	t.Parallel()
	const (
		log  = `{"id": "log", "uses": "data.set", "with": {"values": {"a": 1}}}`
		poll = `{"id": "new", "type": "poll", "every": "5m", "request": {"url": "https://example.com"}, "items": "response.body", "key": "item.id", "connection": %q}`
	)
	get := func(id, connection, path string) string {
		return fmt.Sprintf(`{"id": %q, "uses": "http.request", "connection": %q, "with": {"url": "https://example.com/%s"}}`, id, connection, path)
	}
	steps := func(list ...string) string {
		joined, _ := json.Marshal(rawList(list))
		return fmt.Sprintf(`{"steps": %s}`, joined)
	}
	inBlock := func(step string) string {
		return fmt.Sprintf(`{"id": "each", "foreach": "[1]", "steps": [%s]}`, step)
	}
	withTrigger := func(connection string) string {
		return fmt.Sprintf(`{"triggers": [%s], "steps": [%s]}`, fmt.Sprintf(poll, connection), log)
	}
	saved := steps(get("a", "closed", "x"), get("b", "open", "x"))
	for name, test := range map[string]struct {
		was, now string
		want     []string
	}{
		"unchanged":                  {saved, saved, nil},
		"written in another order":   {steps(get("a", "closed", "x")), steps(`{"with": {"url":"https://example.com/x"}, "connection": "closed", "uses": "http.request", "id": "a"}`), nil},
		"the present name":           {steps(get("a", "was_closed", "x")), steps(get("a", "closed", "x")), nil},
		"an earlier name":            {saved, steps(get("a", "was_closed", "x"), get("b", "open", "x")), nil},
		"another step changed":       {saved, steps(get("a", "closed", "x"), get("b", "open", "y")), nil},
		"a step before it":           {saved, steps(log, get("a", "closed", "x")), nil},
		"moved":                      {saved, steps(get("b", "open", "x"), get("a", "closed", "x")), nil},
		"removed":                    {saved, steps(get("b", "open", "x")), nil},
		"new":                        {steps(log), steps(log, get("a", "closed", "x")), []string{"/steps/1/connection"}},
		"new by an earlier name":     {steps(log), steps(log, get("a", "was_closed", "x")), []string{"/steps/1/connection"}},
		"new in a workflow":          {`{}`, saved, []string{"/steps/0/connection"}},
		"another URL":                {saved, steps(get("a", "closed", "y"), get("b", "open", "x")), []string{"/steps/0/connection"}},
		"in place of another":        {saved, steps(get("a", "closed", "x"), get("b", "closed", "x")), []string{"/steps/1/connection"}},
		"copied":                     {saved, steps(get("a", "closed", "x"), get("c", "closed", "x"), get("b", "open", "x")), []string{"/steps/1/connection"}},
		"another one in its place":   {saved, steps(get("a", "open", "x"), get("b", "open", "x")), nil},
		"new in a block":             {steps(log), steps(inBlock(get("a", "closed", "x"))), []string{"/steps/0/steps/0/connection"}},
		"unchanged in a block":       {steps(inBlock(get("a", "closed", "x"))), steps(inBlock(get("a", "closed", "x")), log), nil},
		"in a trigger":               {steps(log), withTrigger("closed"), []string{"/triggers/0/connection"}},
		"in place in a trigger":      {withTrigger("open"), withTrigger("closed"), []string{"/triggers/0/connection"}},
		"unchanged in a trigger":     {withTrigger("closed"), withTrigger("closed"), nil},
		"an open one in a trigger":   {steps(log), withTrigger("open"), nil},
		"renamed step, same content": {saved, steps(get("z", "closed", "x"), get("b", "open", "x")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := checkAccess(t, test.was, test.now)
			if !slices.Equal(got, test.want) {
				t.Errorf("reported %q, want %q", got, test.want)
			}
		})
	}
}

type rawList []string

// MarshalJSON implements json.Marshaler.
func (l rawList) MarshalJSON() ([]byte, error) {
	var parts []json.RawMessage
	for _, one := range l {
		parts = append(parts, json.RawMessage(one))
	}
	return json.Marshal(parts)
}

// checkAccess returns the pointers of what is reported.
func checkAccess(t *testing.T, was, now string) []string {
	t.Helper()
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var definitions [2]workflow.Definition
	for i, text := range []string{was, now} {
		if err := json.Unmarshal([]byte(text), &definitions[i]); err != nil {
			t.Fatal(err)
		}
	}
	problems, _, err := workflow.Check(t.Context(), definitions[0], definitions[1], actions, types(t), "ws_1", func() (workflow.Names, error) {
		return workflow.Names{Connections: []workflow.ConnectionName{
			{Name: "closed", Now: "closed", Closed: true}, {Name: "was_closed", Now: "closed", Closed: true}, {Name: "open", Now: "open"},
		}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var pointers []string
	for _, problem := range problems {
		pointers = append(pointers, problem.Pointer)
		if problem.Message != "this connection is not open to you" {
			t.Errorf("%s: %s", problem.Pointer, problem.Message)
		}
	}
	return pointers
}
