package integration_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// calling returns the manifest of the shop with a hook and a trigger that has it.
func calling(hook, trigger string) []byte {
	return []byte(shop + `
operations:
  list_shops:
    title: List shops
    request: {path: /shops, items: body.shops}
hooks:
  orders:
    ` + hook + `
triggers:
  new_order:
    title: New order
    ` + trigger + "\n")
}

// What a hook needs is reported at its place.
func TestParseHook(t *testing.T) {
	t.Parallel()
	const (
		scope      = "scope: trigger\n    "
		register   = "register: {method: POST, path: '/shops/${{ input.shop }}/hooks', json: {url: '${{ hook.url }}', secret: '${{ hook.secret }}', id: '${{ hook.id }}'}}\n    "
		unregister = "unregister: {method: DELETE, path: '/hooks/${{ subscription.id }}'}\n    "
		life       = register + unregister
		verify     = "verify: {scheme: github, secret: '${{ hook.secret }}'}\n    "
		hook       = scope + life + verify + "key: item.id"
		trigger    = "input: {shop: {type: string, required: true}}\n    hook: orders"
		setup      = "setup: 'Enter ${{ hook.url }} in your shop.'\n    "
		shared     = "scope: connection\n    "
	)
	for _, tc := range []struct{ hook, trigger, want string }{
		{hook, trigger, ""},
		{hook, trigger + "\n    when: headers['x-topic'] == input.shop && item.new == true\n    key: item.number\n    output: {order: '${{ item }}', topic: \"${{ headers['x-topic'] }}\"}", ""},
		{scope + register + verify + "expires: date(subscription.until)\n    key: item.id", trigger, ""},
		{shared + setup + "verify: {scheme: hmac, header: X-Sign, algorithm: sha1, encoding: base64, signed: '{method}{url}{body}', secret: '${{ subscription.key }}', secret_encoding: base64}\n    items: body.orders\n    key: item.id\n    challenge: {when: query.challenge != nil && query.token == hook.secret, reply: '${{ query.challenge }}'}\n    reply: {ok: true}", "hook: orders", ""},
		{shared + setup + "verify: {scheme: equals, given: \"headers['x-token']\", secret: '${{ secret.token }}'}", "hook: orders\n    poll: {operation: list_shops, every: 1m}\n    key: item.id", ""},
		{scope + life + verify + "challenge: {when: method == 'HEAD', reply: ''}\n    key: item.id", trigger, ""},
		{scope + life + verify + "items: method\n    key: item.id", trigger, "/hooks/orders/items: unknown name method"},
		{life + verify + "key: item.id", trigger, "/hooks/orders/scope: \"\" is unknown"},
		{scope + verify + "key: item.id", trigger, "/hooks/orders: needs either register"},
		{scope + life + setup + verify + "key: item.id", trigger, "/hooks/orders: needs either register"},
		{scope + setup + unregister + verify + "key: item.id", trigger, "/hooks/orders: renew, unregister and expires need register"},
		{scope + register + verify + "key: item.id", trigger, "/hooks/orders/unregister: is required"},
		{scope + life + "renew: {method: PATCH, path: /hooks}\n    " + verify + "key: item.id", trigger, "/hooks/orders/expires: is required with renew"},
		{scope + life + "key: item.id", trigger, "/hooks/orders/verify: is required"},
		{scope + life + "verify: {scheme: github, secret: hunter2}\n    key: item.id", trigger, "/hooks/orders/verify/secret: must come from an expression"},
		{scope + life + "verify: {scheme: basic, secret: '${{ hook.secret }}'}\n    key: item.id", trigger, `/hooks/orders/verify/scheme: "basic" is unknown`},
		{scope + life + "verify: {scheme: equals, secret: '${{ hook.secret }}'}\n    key: item.id", trigger, "/hooks/orders/verify/given: belongs to the scheme equals"},
		{scope + life + "verify: {scheme: github, given: body.x, secret: '${{ hook.secret }}'}\n    key: item.id", trigger, "/hooks/orders/verify/given: belongs to the scheme equals"},
		{scope + life + "verify: {scheme: hmac, secret: '${{ hook.secret }}'}\n    key: item.id", trigger, "/hooks/orders/verify/header: is required"},
		{scope + life + "verify: {scheme: hmac, header: X-Sign, signed: '{url}', secret: '${{ hook.secret }}'}\n    key: item.id", trigger, "/hooks/orders/verify/signed: must contain {body} exactly once"},
		{scope + life + "verify: {scheme: github, prefix: 'v1=', secret: '${{ hook.secret }}'}\n    key: item.id", trigger, "/hooks/orders/verify/prefix: belongs to the scheme hmac"},
		{scope + life + "verify: {scheme: github, secret: '${{ input.shop }}'}\n    key: item.id", trigger, "/hooks/orders/verify/secret: unknown name input"},
		{scope + life + verify, trigger, "/triggers/new_order/key: is required"},
		{hook, "hook: orders\n    poll: {operation: list_shops, every: 1m}", "/hooks/orders/register/path: input has no shop"},
		{hook, trigger + "\n    poll: {operation: list_shops, every: 1m}", "/triggers/new_order/key: is required"},
		{hook, trigger + "\n    key: item.id\n    when: headers.topic == 'x'\n    poll: {operation: list_shops, every: 1m}", "/triggers/new_order/when: unknown name headers"},
		{hook, "input: {shop: {type: string, required: true}}\n    hook: order", `/triggers/new_order/hook: there is no hook "order" (did you mean "orders"?)`},
		{shared + life + verify + "key: item.id", trigger, "/hooks/orders/register/path: input has no shop"},
		{scope + register + "unregister: {do: [{path: /a}]}\n    " + verify + "key: item.id", trigger, "/hooks/orders/unregister/do/0/id: is required"},
		{scope + life + verify + "challenge: {when: query.a == '1'}\n    key: item.id", trigger, "/hooks/orders/challenge/reply: is required"},
		{scope + register + "unregister: {path: /a, response: file}\n    " + verify + "key: item.id", trigger, "/hooks/orders/unregister: a request about a hook has no files"},
	} {
		_, err := integration.Parse(calling(tc.hook, tc.trigger), nil)
		checkError(t, tc.hook+"\n"+tc.trigger, err, tc.want)
	}
}

// installed returns a manifest with a hook for all connections of an app.
func installed(host, learn, hook string) []byte {
	return []byte(`
id: team
name: Team
category: communication
docs: https://team.example/docs
base_url: https://team.example
connection:
  fields: {host: {title: Host, format: host, optional: true}, number: {title: Number, optional: true}}
  auth:
    - {kind: oauth2, authorize_url: "https://team.example/authorize", token_url: "https://team.example/token", client_auth: basic, app_fields: {signing_secret: {title: Signing secret, secret: true}}}
    - {kind: bearer, label: Token, fields: {signing_secret: {title: Signing secret, secret: true}}}
  hosts: [` + host + `]
  test: {path: /me}
  learn: {label: "${{ test.name }}"` + learn + `}
hooks:
  events:
    scope: app
    key: item.id
    ` + hook + `
triggers:
  new_event: {title: New event, hook: events}
`)
}

// A hook for all connections of an app needs what keeps them apart: an account that only the
// service can tell.
func TestParseAppHook(t *testing.T) {
	t.Parallel()
	const (
		host    = "team.example"
		learn   = `, account: "${{ test.team }}"`
		setup   = "setup: 'Enter ${{ hook.url }} in your app.'\n    "
		verify  = "verify: {scheme: slack, secret: '${{ secret.signing_secret }}'}\n    "
		account = "account: item.team"
		hook    = setup + verify + account
	)
	for _, tc := range []struct{ host, learn, hook, want string }{
		{host, learn, hook, ""},
		{host, `, account: "${{ token.team ?? test.team }}"`, setup + "verify: {scheme: github, secret: '${{ secret.client_secret }}'}\n    " + account, ""},
		{host, learn, setup + verify, "/hooks/events/account: is required with the scope app"},
		{host, learn, verify + account + "\n    register: {method: POST, path: /hooks}\n    unregister: {method: DELETE, path: /hooks}", "/hooks/events/register: does not belong to the scope app"},
		{host, learn, setup + "verify: {scheme: slack, secret: '${{ hook.secret }}'}\n    " + account, "/hooks/events/verify/secret: unknown name hook"},
		{host, learn, setup + "verify: {scheme: slack, secret: '${{ connection.host }}'}\n    " + account, "/hooks/events/verify/secret: unknown name connection"},
		{host, learn, setup + verify + "account: connection.number", "/hooks/events/account: connection has no number"},
		{host, "", hook, "/hooks/events/scope: cannot be app: with Sign in with Team, a connection learns no account"},
		{host, `, account: "${{ connection.number }}"`, hook, "a connection learns no account"},
		{host, `, account: "${{ callback.account ?? test.team }}"`, hook, "a connection learns no account"},
		{host, `, account: "${{ connection.number ?? test.team }}"`, hook, "a connection learns no account"},
		{`"${{ connection.host }}"`, learn, hook, "/hooks/events/scope: cannot be app: whoever connects chooses the host ${{ connection.host }}"},
	} {
		_, err := integration.Parse(installed(tc.host, tc.learn, tc.hook), nil)
		checkError(t, tc.learn+"\n"+tc.hook, err, tc.want)
	}
	_, err := integration.Parse(calling("scope: connection\n    setup: 'Enter ${{ hook.url }}.'\n    verify: {scheme: github, secret: '${{ hook.secret }}'}\n    account: item.shop\n    key: item.id", "hook: orders"), nil)
	checkError(t, "an account of one connection", err, "/hooks/orders/account: belongs to the scope app")
}
