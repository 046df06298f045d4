package integration_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/openapi"
)

// The OpenAPI document, which is written by hand, has the same names as the
// manifests.
func TestNamesAreInTheContract(t *testing.T) {
	t.Parallel()
	type schema struct {
		Extensible []string `json:"x-extensible-enum"`
		Properties map[string]struct {
			Extensible []string `json:"x-extensible-enum"`
		}
	}
	var contract struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct {
					Name   string
					Schema struct{ Enum []string }
				}
			}
		}
		Components struct {
			Schemas struct{ IntegrationCategory, IntegrationAuth, IntegrationField schema }
		}
	}
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &contract); err != nil {
		t.Fatal(err)
	}
	schemas := contract.Components.Schemas
	for _, tc := range []struct {
		what           string
		want, contract []string
	}{
		{"categories", integration.Categories(), schemas.IntegrationCategory.Extensible},
		{"the filter by category", integration.Categories(), contract.Paths["/v1/integrations"].Get.Parameters[0].Schema.Enum},
		{"kinds", integration.Kinds(), schemas.IntegrationAuth.Properties["kind"].Extensible},
		{"formats", integration.Formats(), schemas.IntegrationField.Properties["format"].Extensible},
	} {
		if diff := cmp.Diff(tc.want, tc.contract); diff != "" {
			t.Errorf("%s (-manifests +contract):\n%s", tc.what, diff)
		}
	}
}
