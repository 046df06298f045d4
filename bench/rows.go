package main

import "fmt"

// workspace is a tenant with workflows to run.
type workspace struct {
	key   string
	empty string // a workflow without steps
	three string // a workflow of three pure steps
}

// workspaces creates n tenants. The load is spread over them because of the
// limits of their plans.
func (c *client) workspaces(n int) ([]workspace, error) {
	var out []workspace
	for i := range n {
		var made struct {
			APIKey string `json:"api_key"`
		}
		body := fmt.Sprintf(`{"name":"bench %d","plan":"enterprise","requests_per_minute":1000000}`, i)
		if err := c.call("POST", "/v1/workspaces", c.server.key, body, &made); err != nil {
			return nil, err
		}
		w := workspace{key: made.APIKey}
		var err error
		if w.empty, err = c.workflow(w.key, `{"state":"active"}`); err != nil {
			return nil, err
		}
		if w.three, err = c.workflow(w.key, threeSteps); err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

const threeSteps = `{"state":"active","steps":[
	{"id":"a","uses":"data.set","with":{"values":{"name":"${{ trigger.payload.name }}"}}},
	{"id":"b","uses":"data.set","with":{"values":{"double":"${{ trigger.payload.n * 2 }}"}}},
	{"id":"c","uses":"data.set","with":{"values":{"text":"${{ steps.a.output.name }} has ${{ steps.b.output.double }}"}}}]}`

func (c *client) workflow(key, patch string) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := c.call("POST", "/v1/workflows", key, `{"name":"bench"}`, &made); err != nil {
		return "", err
	}
	return made.ID, c.call("PATCH", "/v1/workflows/"+made.ID, key, patch, &made)
}

// row is one load.
type row struct {
	name    string
	clients int
	want    int
	next    func(client, n int) request
}

// threeStepsManyClients is the name of the row in which many clients run workflows
// of three steps.
const threeStepsManyClients = "run three steps to the end, 32 clients (W1)"

func rows(workspaces []workspace) []row {
	pick := func(client int) workspace { return workspaces[client%len(workspaces)] }
	const payload = `{"payload":{"name":"Ada","n":21}}`
	finished := func(id func(workspace) string) func(int, int) request {
		return func(client, _ int) request {
			w := pick(client)
			return newRequest("POST", "/v1/workflows/"+id(w)+"/runs", w.key, payload, "Prefer: wait=30")
		}
	}
	empty := finished(func(w workspace) string { return w.empty })
	three := finished(func(w workspace) string { return w.three })
	read := func(client, _ int) request {
		w := pick(client)
		return newRequest("GET", "/v1/workflows/"+w.three, w.key, "")
	}
	create := func(client, n int) request {
		// Spread evenly, so that no workspace reaches the limit of its plan.
		return newRequest("POST", "/v1/workflows", pick(client+n).key, `{"name":"created by the benchmark"}`)
	}
	accept := func(client, _ int) request {
		w := pick(client)
		return newRequest("POST", "/v1/workflows/"+w.empty+"/runs", w.key, payload)
	}
	return []row{
		{"read a workflow, 32 clients", 32, 200, read},
		{"create a workflow, 32 clients", 32, 201, create},
		{"start a run (accepted), 32 clients", 32, 201, accept},
		{"run an empty workflow to its end, 32 clients", 32, 200, empty},
		{threeStepsManyClients, 32, 200, three},
		{"run an empty workflow to its end, 1 client", 1, 200, empty},
		{"run three steps to the end, 1 client (W1)", 1, 200, three},
	}
}
