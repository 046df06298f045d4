package catalog_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	actions "github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/openapi"
)

// property is a part of a JSON Schema.
type property struct {
	Ref         string `json:"$ref"`
	Description string
	Enum        []string
	AnyOf       []property
	Extensible  []string `json:"x-extensible-enum"`
	Properties  map[string]property
}

// TestTypesAreInTheContract checks that the OpenAPI document, which is written by
// hand, has the types of the catalog with their members.
func TestTypesAreInTheContract(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Components struct {
			Schemas struct{ Trigger, TriggerState, RunTrigger property }
		}
	}
	if err := json.Unmarshal(text, &contract); err != nil {
		t.Fatal(err)
	}
	schemas := contract.Components.Schemas
	types, err := catalog.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := types.Format().Names()
	for schema, got := range map[string][]string{
		"Trigger":      schemas.Trigger.Properties["type"].AnyOf[0].Enum,
		"TriggerState": schemas.TriggerState.Properties["type"].Extensible,
	} {
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("types of %s (-catalog +contract):\n%s", schema, diff)
		}
	}
	if diff := cmp.Diff(append(slices.Clone(names), "run"), schemas.RunTrigger.Properties["type"].Extensible); diff != "" {
		t.Errorf("types of RunTrigger (-catalog +contract):\n%s", diff)
	}

	declared := map[string]bool{"id": true, "type": true}
	for kind, members := range membersByType(t, types.Format()) {
		for _, name := range members {
			declared[name] = true
			described := schemas.Trigger.Properties[name]
			if described.Ref == "" && !strings.Contains(described.Description, "`"+kind+"`") && (kind != "services" || !strings.Contains(described.Description, "riggers of services")) {
				t.Errorf("the contract does not say that %s belongs to %s: %q", name, kind, described.Description)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(schemas.Trigger.Properties))); diff != "" {
		t.Errorf("members of Trigger (-catalog +contract):\n%s", diff)
	}
}

// membersByType returns the members of each type besides id and type.
func membersByType(t *testing.T, types *workflow.TriggerTypes) map[string][]string {
	t.Helper()
	known, err := actions.New(actions.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := workflow.Schema(known, types, true)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Trigger struct {
				AllOf []struct {
					If struct {
						Properties struct {
							Type struct{ Const, Pattern string }
						}
					}
					Then struct{ Properties map[string]any }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, one := range schema.Defs.Trigger.AllOf {
		members := slices.Sorted(maps.Keys(one.Then.Properties))
		kind := one.If.Properties.Type
		if kind.Pattern != "" {
			kind.Const = "services"
		}
		out[kind.Const] = slices.DeleteFunc(members, func(name string) bool { return name == "id" || name == "type" })
	}
	if len(out) != len(types.Names())+1 {
		t.Fatalf("the schema has the types %v", slices.Sorted(maps.Keys(out)))
	}
	return out
}
