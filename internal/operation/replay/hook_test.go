package replay_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/operation/replay"
)

// acmeHook is a hook that expires.
const acmeHook = acme + `
hooks:
  things:
    scope: trigger
    register: {method: POST, path: /hooks, json: {url: "${{ hook.url }}"}}
    expires: "subscription.until == nil ? nil : date(subscription.until)"
    verify: {scheme: equals, given: body.token, secret: "${{ hook.secret }}"}
    key: item.id
triggers:
  thing: {title: Thing, hook: things}
`

// A registration ends at the time that its answer has.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, until, want, problem string }{
		{"a time", `"2026-11-25T09:00:00.000Z"`, "expires_at: \"2026-11-25T09:00:00Z\"", ""},
		{"seconds", "1795597200", "expires_at: \"2026-11-25T09:00:00Z\"", ""},
		{"another time", `"2026-11-25T09:00:00.000Z"`, "expires_at: \"2026-11-26T09:00:00Z\"", `expires_at is "2026-11-25T09:00:00Z", not "2026-11-26T09:00:00Z"`},
		{"no end", "null", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i, tests := parse(t, acmeHook, `
hooks:
  things:
    - name: register
      does: register
      exchanges:
        - request: {method: POST, url: "https://acme.example/hooks", json: {url: "https://stepmill.example/service-hooks/token"}}
          answer: {json: {until: `+tc.until+`}}
      subscription: {until: `+tc.until+`}
      `+tc.want+"\n")
			results := replay.Run(t.Context(), nil, i, tests, nil, nil)
			if len(results) != 1 || results[0].Problem != tc.problem {
				t.Errorf("the results are %+v, want the problem %q", results, tc.problem)
			}
		})
	}
}
