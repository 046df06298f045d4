package crash_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// next sends a random request. It returns false if the server has exited.
func (c *client) next() bool {
	if c.load.t.Failed() {
		return false
	}
	c.pauseUpTo(5 * time.Millisecond)
	_, _, hooks, keys := c.load.ledger.sizes()
	dice := c.random.IntN(100)
	switch {
	case len(c.own) == 0 || dice < 6:
		return c.createWorkflow()
	case dice < 14:
		return c.changeWorkflow(c.own[c.random.IntN(len(c.own))])
	case dice < 18 && hooks < hookLimit:
		return c.createWebhook()
	case dice < 21 && keys < keyLimit:
		return c.createKey()
	case dice < 38:
		return c.startOnce()
	case dice < 44 && len(c.keyed) > 0:
		return c.repeat(c.keyed[c.random.IntN(len(c.keyed))])
	case dice < 56 && len(c.runs) > 0:
		return c.cancel(c.recent())
	case dice < 64 && len(c.runs) > 0:
		return c.read(c.runs[c.random.IntN(len(c.runs))])
	}
	return c.start(c.own[c.random.IntN(len(c.own))])
}

// recent returns one of the last runs, preferably one that may still be waiting.
func (c *client) recent() *execution {
	last := c.runs[max(0, len(c.runs)-6):]
	for _, e := range slices.Backward(last) {
		if e.cancel == notRequested && e.chain().waits() && c.random.IntN(4) > 0 {
			return e
		}
	}
	return last[c.random.IntN(len(last))]
}

// createWorkflow makes a workflow and gives it steps.
func (c *client) createWorkflow() bool {
	name, description := c.name("workflow"), fmt.Sprintf("made by client %d", c.number)
	var made *workflow
	answered := c.send(request{
		method: "POST", path: "/v1/workflows", body: map[string]any{"name": name, "description": description}, key: c.maybeKey(),
		onSuccess: func(a harness.Response) {
			var now workflowBody
			c.decode(a, &now)
			made = &workflow{id: now.ID, name: name, description: description, version: 1, versions: map[int]chain{1: {}}}
			c.own = append(c.own, made)
			c.load.ledger.addWorkflow(made)
		},
		onLost: func() {},
	})
	if !answered || made == nil {
		return answered
	}
	return c.changeWorkflow(made)
}

func (c *client) changeWorkflow(w *workflow) bool {
	wanted := randomChain(c.random)
	return c.send(request{
		method: "PATCH", path: "/v1/workflows/" + w.id, body: map[string]any{"steps": wanted.steps()},
		onSuccess: func(a harness.Response) {
			var now workflowBody
			c.decode(a, &now)
			if now.Version != w.version && now.Version != w.version+1 {
				c.load.t.Errorf("workflow %s went from version %d to %d", w.id, w.version, now.Version)
			}
			w.version = now.Version
			w.versions[w.version] = wanted
		},
		onLost: func() { w.uncertain = wanted },
	})
}

func (c *client) createWebhook() bool {
	url := "http://127.0.0.1:1/" + c.name("hook")
	body := map[string]any{"url": url, "events": []string{"run.failed", "workflow.paused"}}
	workflowID := ""
	if c.random.IntN(2) == 0 {
		workflowID = c.own[c.random.IntN(len(c.own))].id
		body["workflow_id"] = workflowID
	}
	return c.send(request{
		method: "POST", path: "/v1/webhooks", body: body, key: c.maybeKey(),
		onSuccess: func(a harness.Response) {
			var now struct {
				ID            string `json:"id"`
				SigningSecret string `json:"signing_secret"`
			}
			c.decode(a, &now)
			c.load.ledger.addWebhook(webhook{now.ID, url, workflowID, now.SigningSecret})
		},
		onLost: func() {},
	})
}

func (c *client) createKey() bool {
	name := c.name("apikey")
	return c.send(request{
		method: "POST", path: "/v1/api-keys", body: map[string]any{"name": name, "scopes": []string{"read"}}, key: c.maybeKey(),
		onSuccess: func(a harness.Response) {
			var now struct{ ID, Key string }
			c.decode(a, &now)
			c.load.ledger.addKey(apiKey{now.ID, name, now.Key})
		},
		onLost: func() {},
	})
}

// start starts a run of one of the client's workflows without a key. If the response is
// lost, the id is unknown.
func (c *client) start(w *workflow) bool {
	if w.uncertain != nil {
		return c.resolve(w)
	}
	n := c.random.Int64N(1000)
	return c.send(request{
		method: "POST", path: "/v1/workflows/" + w.id + "/runs", body: payload(n),
		onSuccess: func(a harness.Response) { c.started(w, n, a) },
		onLost:    func() {},
	})
}

// startOnce starts a run with a key and repeats the request until it gets a response. In
// the end there is exactly one run for the key.
func (c *client) startOnce() bool {
	n := int64(c.number)*1_000_000 + int64(c.serial)
	o := request{method: "POST", path: "/v1/workflows/" + c.load.once.id + "/runs", body: payload(n), key: c.name("start")}
	o.onSuccess = func(a harness.Response) {
		e := c.started(c.load.once, n, a)
		repeated := o
		repeated.onSuccess = func(again harness.Response) { c.compareReplay(e, a, again) }
		c.keyed = append(c.keyed, repeated)
	}
	return c.send(o)
}

func (c *client) started(w *workflow, n int64, a harness.Response) *execution {
	var now runBody
	c.decode(a, &now)
	e := &execution{id: now.ID, of: w, version: now.WorkflowVersion, n: n}
	if now.Status != running || now.WorkflowID != w.id || w.versions[now.WorkflowVersion] == nil {
		c.load.t.Errorf("start of %s returned %s", w.id, a.Body)
	}
	c.runs = append(c.runs, e)
	c.load.ledger.addRun(e)
	return e
}

// repeat sends a request again that was acknowledged before.
func (c *client) repeat(o request) bool { return c.send(o) }

func (c *client) compareReplay(e *execution, first, again harness.Response) {
	if again.Header.Get("Idempotent-Replayed") != "true" || again.Status != first.Status || !bytes.Equal(again.Body, first.Body) {
		c.load.t.Errorf("the replay of the start of %s returned %d %s", e.id, again.Status, again.Body)
	}
}

func (c *client) cancel(e *execution) bool {
	if e.cancel == confirmed || e.cancel == rejected {
		return c.read(e)
	}
	ended := false
	answered := c.send(request{
		method: "POST", path: "/v1/runs/" + e.id + "/cancel",
		onSuccess: func(a harness.Response) {
			var now runBody
			c.decode(a, &now)
			e.cancel = confirmed
			c.load.ledger.count(func(n *counts) { n.cancels++ })
			c.report(e.check(now, a.Body))
		},
		onLost:      func() { e.cancel = unknown },
		otherStatus: 409, onOther: func() { ended = true },
	})
	if !ended {
		return answered
	}
	c.load.ledger.count(func(n *counts) { n.rejectedCancels++ })
	if e.cancel == notRequested {
		e.cancel = rejected
	}
	return c.read(e)
}

// read reads a run and compares it with the ledger.
func (c *client) read(e *execution) bool {
	return c.send(request{
		method: "GET", path: "/v1/runs/" + e.id,
		onSuccess: func(a harness.Response) {
			var now runBody
			c.decode(a, &now)
			c.report(e.check(now, a.Body))
		},
		onLost: func() {},
	})
}

func (c *client) report(violations []string) {
	for _, v := range violations {
		c.load.t.Error(v)
	}
}
