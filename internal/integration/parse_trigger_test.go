package integration_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// polling returns the manifest of the shop with a trigger that polls an operation.
func polling(call, trigger string) []byte {
	return []byte(shop + `
operations:
  list_shops:
    title: List shops
    request: {path: /shops, items: body.shops}
    option: {value: item.id, label: item.name}
  since:
    title: List things
    hidden: true
    input: {shop: {type: string, required: true}}
    request: ` + call + `
  add: {title: Add, request: {method: POST, path: /things, items: body.things}}
triggers:
  new_thing:
    title: New thing
    ` + trigger + "\n")
}

// What a trigger needs is reported at its place.
func TestParseTrigger(t *testing.T) {
	t.Parallel()
	const (
		call  = "{path: /things, query: {since: '${{ cursor }}', shop: '${{ input.shop }}'}, items: body.things}"
		input = "input: {shop: {type: string, required: true, options: list_shops}}\n    "
		key   = "\n    key: item.id"
		poll  = "poll: {operation: since, every: 1m, cursor: body.next}"
	)
	for _, tc := range []struct{ call, trigger, want string }{
		{call, input + poll + key, ""},
		{call, input + "poll: {operation: since, every: 1m, start: '${{ now() }}', cursor: now(), more: body.more, reset: status == 410}\n    when: item.new == true\n    output: {id: '${{ item.id }}', shop: '${{ input.shop }}'}" + key, ""},
		{call, input + "poll: {operation: since, every: 1m, start: {path: '/shops/${{ input.shop }}', output: '${{ body.last }}'}, cursor: 'items[0].id'}" + key, ""},
		{call, input + poll, "/triggers/new_thing/key: is required"},
		{call, input + "key: item.id", "/triggers/new_thing: needs a poll"},
		{call, input + "poll: {operation: sinc, every: 1m}" + key, `/triggers/new_thing/poll/operation: there is no operation "sinc" (did you mean "since"?)`},
		{call, input + "poll: {operation: since, every: 5s}" + key, "/triggers/new_thing/poll/every: must be at least 10s"},
		{call, input + "poll: {operation: since}" + key, "/triggers/new_thing/poll/every: is required"},
		{call, input + "poll: {operation: add, every: 1m}" + key, "/triggers/new_thing/poll/operation: the operation add may have effects"},
		{call, poll + key, "/triggers/new_thing/poll/operation: the operation since needs the input shop, which the trigger does not have"},
		{"{path: /things}", input + "poll: {operation: since, every: 1m}" + key, "/triggers/new_thing/poll/operation: the operation since does not return a list"},
		{"{path: /things, response: file, items: body}", input + "poll: {operation: since, every: 1m}" + key, "/triggers/new_thing/poll/operation: the operation since reads or sends files"},
		{call, input + "poll: {operation: since, every: 1m, more: body.more}" + key, "/triggers/new_thing/poll/cursor: is required with start, more and reset"},
		{call, input + "poll: {operation: since, every: 1m, cursor: body.next, start: {path: /last}}" + key, "/triggers/new_thing/poll/start/output: is required: the first cursor"},
		{call, input + poll + "\n    key: body.id", "/triggers/new_thing/key: unknown name body"},
		{call, input + poll + "\n    output: {id: '${{ cursor }}'}" + key, "/triggers/new_thing/output/id: unknown name cursor"},
		{call, "input: {shop: {type: string, required: true}, file: {type: file}}\n    " + poll + key, "/triggers/new_thing/input/file/type: a trigger has no files"},
		{call, "input: {shop: {type: string, required: true, options: list_shop}}\n    " + poll + key, `/triggers/new_thing/input/shop/options: there is no operation "list_shop"`},
		{call, input + "poll: {operation: list_shops, every: 1m}" + key, "/operations/since/request/query/since: unknown name cursor"}, // it is not polled
	} {
		_, err := integration.Parse(polling(tc.call, tc.trigger), nil)
		checkError(t, tc.trigger, err, tc.want)
	}
}
