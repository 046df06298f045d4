package connection_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
)

// statusOnly stands in for a service whose answers are a status.
type statusOnly int

// Do implements the client of connections.
func (s statusOnly) Do(context.Context, egress.Request) (*egress.Response, error) {
	return &egress.Response{Status: int(s), Header: http.Header{}, Body: []byte("no JSON")}, nil
}

// The first rule about an answer decides whether a test has succeeded. One of the kind none
// says that the answer is no error, whatever its status is.
func TestRulesOfTests(t *testing.T) {
	t.Parallel()
	catalog, err := integration.Load(fstest.MapFS{"shop/integration.yaml": {Data: []byte(`
id: shop
name: Shop
category: commerce
docs: https://shop.example
base_url: https://shop.example
connection:
  auth: [{kind: bearer, label: Token}]
  hosts: [shop.example]
  test:
    path: /
    errors:
      - {when: "status in [404, 405]", kind: none}
      - {when: "status in [202, 405]", message: "not now"}
  learn: {label: Shop}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	in := newInstallation(t)
	for status, want := range map[int]string{200: "", 202: "not now", 404: "", 405: "", 410: "responded with 410", 401: "responded with 401"} {
		service := in.assemble(statusOnly(status), catalog, "node_1")
		made, err := create(t.Context(), service.Connections, in.owner, connection.New{
			Name: fmt.Sprintf("shop-%d", status), Integration: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "the-token-of-the-shop"},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := service.Test(t.Context(), in.owner, made.ID)
		if err != nil || (want == "") != (result.Problem == "") || !strings.Contains(result.Problem, want) {
			t.Errorf("%d: the problem is %q, %v; want %q", status, result.Problem, err, want)
		}
	}
}
