package integration

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/openapi"
)

// TestDefinitionIsInTheContract compares the members of the definition of a custom
// connection and their values with the API, and checks that a change of any of them but
// the hosts and scopes is a change of use.
func TestDefinitionIsInTheContract(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Components struct {
			Schemas struct {
				ConnectionDefinition struct {
					Properties map[string]struct{ Enum []string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &contract); err != nil {
		t.Fatal(err)
	}
	properties := contract.Components.Schemas.ConnectionDefinition.Properties
	var members []string
	for field := range reflect.TypeFor[custom]().Fields() {
		members = append(members, field.Tag.Get("json"))
	}
	slices.Sort(members)
	if diff := cmp.Diff(members, slices.Sorted(maps.Keys(properties))); diff != "" {
		t.Errorf("members (-definition +contract):\n%s", diff)
	}
	for member, values := range map[string][]string{
		"grant": {grantCode, grantClient, grantDevice}, "client_auth": {"basic", "body", PrivateKeyJWT, ClientAuthTLS}, "token_body": {"form", "json"},
	} {
		if diff := cmp.Diff(values, properties[member].Enum); diff != "" {
			t.Errorf("%s (-definition +contract):\n%s", member, diff)
		}
		for _, value := range append(values, "other") {
			definition, err := strictjson.Encode(map[string]any{"hosts": []string{"a.example"}, "token_url": "https://id.example/t", member: value})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseCustom(OAuth2, definition)
			problems, _ := errors.AsType[Errors](err)
			rejected := slices.ContainsFunc(problems, func(e *Error) bool { return e.Pointer == "/"+member })
			if rejected != (value == "other") {
				t.Errorf("%s: %s is rejected: %v, %v", member, value, rejected, err)
			}
		}
	}
	values := map[string]any{"string": "x", "[]string": []string{"x"}, "map[string]string": map[string]string{"x": "y"}, "*bool": true, "*integration.manifestApply": struct{}{}}
	for field := range reflect.TypeFor[custom]().Fields() {
		name, value := field.Tag.Get("json"), values[field.Type.String()]
		if value == nil {
			t.Fatalf("%s is a %s: add a value of it", name, field.Type)
		}
		changed, err := strictjson.Encode(map[string]any{name: value})
		if err != nil {
			t.Fatal(err)
		}
		if same := SameUse(json.RawMessage("{}"), changed); same != (name == "hosts" || name == "scopes") {
			t.Errorf("another %s is the same use: %v", name, same)
		}
	}
}
