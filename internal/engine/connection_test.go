package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
)

// shop is the connection of the steps in these tests, token its secret.
const (
	shop  = "shop"
	token = "token-of-the-shop"
)

// connections is a connection that can be broken.
type connections struct {
	broken  atomic.Bool
	uses    atomic.Int64
	unknown atomic.Bool // its secret before it is used
	stuck   atomic.Bool // the store fails when it is used
}

func (c *connections) Mask(_ context.Context, _ string, names []string) (*mask.Masker, error) {
	if c.unknown.Load() || !slices.Equal(names, []string{shop}) {
		return nil, nil
	}
	return mask.New([]string{token}), nil
}

func (c *connections) Use(ctx context.Context, _, name string, _ time.Duration, call func(context.Context, action.Connection) error) error {
	c.uses.Add(1)
	if c.stuck.Load() {
		return &connection.StoreError{Name: name, Cause: errors.New("the disk is full")}
	}
	if c.broken.Load() {
		return &connection.BrokenError{Name: name, Problem: "the token was revoked"}
	}
	return call(ctx, action.Connection{Name: name, Mask: mask.New([]string{token})})
}

const shopStep = `[{"id": "order", "uses": "test.effect", "connection": "shop", "with": {"returns": "` + token + `", "logs": "it is ` + token + `"}}]`

func TestSecretsOfConnectionsAreMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	id := w.startRun(w.workflow(shopStep), "{}")
	d := w.finished(id)
	if d.Status != run.Succeeded || w.connections.uses.Load() != 1 {
		t.Fatalf("%s %+v, %d uses", d.Status, d.Error, w.connections.uses.Load())
	}
	if output := string(d.Steps[0].Output); strings.Contains(output, token) || !strings.Contains(output, "***") {
		t.Errorf("output %s", output)
	}
	if logs := w.logs(id); strings.Contains(logs, token) {
		t.Errorf("logs %s", logs)
	}
}

// The secret of a connection is masked in all steps of a run that uses it: before and
// after the step with the connection, in loops, and when the run continues after a wait.
func TestSecretsOfConnectionsAreMaskedInOtherSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		steps := func(prefix string) string {
			return strings.ReplaceAll(`
				{"id": "X_says", "uses": "test.effect", "with": {"returns": "${{ trigger.payload.token }}", "logs": "it is ${{ trigger.payload.token }}"}},
				{"id": "X_sets", "uses": "data.set", "with": {"values": {"is": "${{ fromBase64(trigger.payload.encoded) }}"}}},
				{"id": "X_fails", "uses": "test.effect", "on_error": "continue", "with": {"fails": "no ${{ trigger.payload.token }}"}},
				{"id": "X_loop", "foreach": "[fromBase64(trigger.payload.encoded), 'other']", "steps": [
					{"id": "X_inside", "uses": "test.effect", "with": {"call": "X_inside", "returns": "${{ item }}"}}]},`, "X", prefix)
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(token))
		id := w.startRun(w.workflow(`[`+steps("before")+`
			{"id": "order", "uses": "test.effect", "connection": "shop", "with": {}},`+steps("after")+`
			{"id": "pause", "uses": "flow.wait", "with": {"for": "1h"}},`+strings.TrimSuffix(steps("later"), ",")+`]`),
			`{"token": "`+token+`", "encoded": "`+encoded+`"}`)
		d := w.endOf(id)
		if d.Status != run.Succeeded {
			t.Fatalf("%s %+v", d.Status, d.Error)
		}
		d.Trigger = run.Trigger{} // what somebody sent is shown
		if shown := w.shownOf(d); strings.Contains(shown, token) || strings.Contains(shown, encoded) {
			t.Errorf("the secret is stored: %s", shown)
		}
	})
}

// A secret that was unknown when the run began is masked once a step has used it.
func TestSecretOfChangedConnectionIsMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	w.connections.unknown.Store(true)
	d := w.finished(w.startRun(w.workflow(`[{"id": "order", "uses": "test.effect", "connection": "shop", "with": {}},
		{"id": "says", "uses": "test.effect", "with": {"returns": "${{ trigger.payload.token }}", "logs": "${{ trigger.payload.token }}"}}]`), `{"token": "`+token+`"}`))
	d.Trigger = run.Trigger{}
	if shown := w.shownOf(d); strings.Contains(shown, token) {
		t.Errorf("the secret is stored: %s", shown)
	}
}

// TestBrokenConnection checks that a step waits for its connection, across a restart,
// and continues when it is told that the connection works again.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		w.connections.broken.Store(true)
		id := w.startRun(w.workflow(shopStep), "{}")
		synctest.Wait()
		waiting := w.get(id)
		step := waiting.Steps[0]
		if name, ok := step.Awaits.Connection(); !ok || name != shop || step.Status != run.StepWaiting || step.Attempt != 1 {
			t.Fatalf("%+v", step)
		}
		if until := step.Until(); until == nil || until.Sub(step.StartedAt) != 7*24*time.Hour {
			t.Errorf("it waits until %v", until)
		}
		time.Sleep(3 * 24 * time.Hour)
		if again := w.get(id).Steps[0]; again.Status != run.StepWaiting || !again.Until().Equal(*step.Until()) {
			t.Errorf("after three days: %+v", again)
		}
		n.stop()
		n.done.Wait()
		w.start(w.store.Leases)
		synctest.Wait()
		w.connections.broken.Store(false)
		at := clock.Now()
		if more, err := w.store.Connections.WakeSteps(t.Context(), w.actor.Workspace.ID, shop, at); err != nil || more {
			t.Fatal(more, err)
		}
		ended := w.finished(id)
		if ended.Status != run.Succeeded || ended.Steps[0].Attempt != 1 || ended.FinishedAt.Sub(at) > time.Second {
			t.Errorf("%s %+v after %s", ended.Status, ended.Error, ended.FinishedAt.Sub(at))
		}
	})
}

// A step whose connection cannot be used because the store fails tries again for as long
// as it takes, without using up its attempts or the time of the run. A connection that
// turns out to be broken then is waited for as usual.
func TestStoreFailsWhenConnectionIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		w.connections.stuck.Store(true)
		id := w.startRun(w.workflow(shopStep), "{}")
		synctest.Wait()
		if step := w.get(id).Steps[0]; step.Status != run.StepWaiting || step.Error != nil || !strings.Contains(step.Reason, shop) {
			t.Errorf("%+v", step)
		}
		time.Sleep(time.Hour)
		if uses := w.connections.uses.Load(); uses < 100 || uses > 200 {
			t.Errorf("it was tried %d times", uses)
		}
		w.connections.broken.Store(true)
		w.connections.stuck.Store(false)
		time.Sleep(time.Minute)
		if step := w.get(id).Steps[0]; step.Status != run.StepWaiting || step.Error != nil || !strings.Contains(step.Reason, "reconnected") {
			t.Errorf("%+v", step)
		}
		w.connections.stuck.Store(true)
		time.Sleep(10 * time.Minute)
		w.connections.broken.Store(false)
		w.connections.stuck.Store(false)
		if d := w.endOf(id); d.Status != run.Succeeded || d.Steps[0].Attempt != 1 {
			t.Errorf("%s %+v", d.Status, d.Error)
		}
	})
}

// TestReconnectDuringOtherSteps checks that a run which another step keeps in memory is
// told too.
func TestReconnectDuringOtherSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		w.connections.broken.Store(true)
		id := w.startRun(w.workflow(`[{"id": "order", "uses": "test.effect", "connection": "shop", "with": {}},
			{"id": "other", "needs": [], "timeout": "15m", "uses": "test.effect", "with": {"takes": "14m"}}]`), "{}")
		time.Sleep(30 * time.Second)
		w.connections.broken.Store(false)
		at := clock.Now()
		if _, err := w.store.Connections.WakeSteps(t.Context(), w.actor.Workspace.ID, shop, at); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if step := w.get(id).Steps[0]; step.Status != run.StepSucceeded || step.FinishedAt.Sub(at) > time.Second {
			t.Errorf("%+v", step)
		}
		w.endOf(id)
	})
}

func TestBrokenConnectionFailsInTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		member string
		after  time.Duration
	}{
		"after seven days":              {"", 7 * 24 * time.Hour},
		"at once if the step says so":   {`, "on_broken_connection": "fail"`, 0},
		"after seven days, said so too": {`, "on_broken_connection": "wait"`, 7 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(w.store.Leases)
				w.connections.broken.Store(true)
				d := w.endOf(w.startRun(w.workflow(`[{"id": "order", "uses": "test.effect", "connection": "shop", "with": {}`+tc.member+`}]`), "{}"))
				if d.Error == nil || d.Error.Code != connection.CodeBroken || d.Steps[0].Attempt != 1 {
					t.Fatalf("%s %+v", d.Status, d.Error)
				}
				if took := d.FinishedAt.Sub(d.StartedAt).Round(time.Minute); took != tc.after {
					t.Errorf("it failed after %s", took)
				}
			})
		})
	}
}

// TestRetryAfterBrokenConnection checks that a step which fails after its connection
// works again waits for its retry, no longer for the connection.
func TestRetryAfterBrokenConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(w.store.Leases)
		w.connections.broken.Store(true)
		id := w.startRun(w.workflow(`[{"id": "order", "uses": "test.effect", "connection": "shop", "with": {"call": "order", "passes_after": 1},
			"retry": {"max_attempts": 2, "backoff": {"initial": "30m", "max": "30m"}}}]`), "{}")
		time.Sleep(time.Second)
		if waits := w.get(id).WaitingFor(); waits == nil || waits.Kind != run.ForConnection || waits.Connection != shop {
			t.Fatalf("%+v", waits)
		}
		w.connections.broken.Store(false)
		at := clock.Now()
		if _, err := w.store.Connections.WakeSteps(t.Context(), w.actor.Workspace.ID, shop, at); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		waits := w.get(id).WaitingFor()
		if waits == nil || waits.Kind != run.ForRetry || waits.Connection != "" || waits.Until.Sub(at) > time.Hour {
			t.Errorf("%+v", waits)
		}
		if usage, err := w.store.Connections.ConnectionUsage(t.Context(), w.actor.Workspace.ID, []string{shop}); err != nil || usage[shop].Waiting != 0 {
			t.Errorf("%d runs wait for the connection, %v", usage[shop].Waiting, err)
		}
		if d := w.finished(id); d.Status != run.Succeeded || d.Steps[0].Attempt != 2 {
			t.Errorf("%s %+v", d.Status, d.Error)
		}
	})
}
