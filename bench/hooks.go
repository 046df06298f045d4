package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

const hookSecret = "a secret of the benchmark"

// hooks are the paths of the hooks of a workspace: one without verification, one
// that verifies and deduplicates calls, and one that returns the result.
type hooks struct{ open, signed, result string }

func (c *client) hooks(w workspace) (out hooks, err error) {
	if err := c.call("PUT", "/v1/secrets/hook", w.key, `{"value":"`+hookSecret+`"}`, &struct{}{}); err != nil {
		return out, err
	}
	for trigger, into := range map[string]*string{
		`{"id":"hook","type":"webhook","rate":1000000}`: &out.open,
		`{"id":"hook","type":"webhook","rate":1000000,"dedupe":"${{ trigger.headers['x-github-delivery'] }}",
			"verify":{"scheme":"github","secret":"${{ secrets.hook }}"}}`: &out.signed,
		`{"id":"hook","type":"webhook","rate":1000000,"respond":"result"}`: &out.result,
	} {
		if *into, err = c.hook(w, trigger, `[{"id":"a","uses":"data.set","with":{"values":{"name":"${{ trigger.payload.name }}"}}}]`); err != nil {
			return out, err
		}
	}
	return out, nil
}

// hook creates an active workflow with a hook and returns the path of the hook.
func (c *client) hook(w workspace, trigger, steps string) (string, error) {
	id, err := c.workflow(w.key, `{"state":"active","triggers":[`+trigger+`],"steps":`+steps+`}`)
	if err != nil {
		return "", err
	}
	var list struct {
		Data []struct {
			URL string `json:"url"`
		} `json:"data"`
	}
	if err := c.call("GET", "/v1/workflows/"+id+"/triggers", w.key, "", &list); err != nil {
		return "", err
	}
	_, path, found := strings.Cut(list.Data[0].URL, "/hooks/")
	if !found {
		return "", fmt.Errorf("unexpected hook address %q", list.Data[0].URL)
	}
	return "/hooks/" + path, nil
}

func hookRows(all []hooks) []row {
	const body = `{"name":"Ada","n":21}`
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(body))
	signature := "X-Hub-Signature-256: sha256=" + hex.EncodeToString(mac.Sum(nil))
	pick := func(client int) hooks { return all[client%len(all)] }
	open := func(client, _ int) request { return newRequest("POST", pick(client).open, "", body) }
	signed := func(client, n int) request {
		return newRequest("POST", pick(client).signed, "", body, signature, fmt.Sprintf("X-GitHub-Delivery: %d-%d", client, n))
	}
	result := func(client, _ int) request { return newRequest("POST", pick(client).result, "", body) }
	return []row{
		{"call a hook (accepted), 32 clients", 32, 202, open},
		{"call a hook, signed, deduped, 32 clients", 32, 202, signed},
		{"call a hook, respond with result, 32 clients", 32, 200, result},
		{"call a hook (accepted), 1 client", 1, 202, open},
	}
}

// firstSteps measures the latency from a call to a hook to the first step of its
// run.
func (c *client) firstSteps(ctx context.Context, w workspace) error {
	r, err := newReceiver(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.server.Close() }()
	path, err := c.hook(w, `{"id":"hook","type":"webhook","rate":1000000}`,
		`[{"id":"a","uses":"http.request","with":{"method":"POST","url":"http://`+r.address+`/","body":{"data":{}}}}]`)
	if err != nil {
		return err
	}
	var waits []time.Duration
	for range 2 * idleRuns {
		begun := time.Now()
		status, body, err := c.conn.do(newRequest("POST", path, "", `{"name":"Ada","n":21}`))
		if err != nil || status != 202 {
			return fmt.Errorf("%d %s: %w", status, body, err)
		}
		came, err := r.await(1)
		if err != nil {
			return err
		}
		waits = append(waits, came[0].at.Sub(begun))
	}
	slices.Sort(waits)
	fmt.Printf("%-58s %10.2f ms, p99 %.2f ms\n", "call to a hook to its first step, idle, median",
		milliseconds(waits[len(waits)/2]), milliseconds(waits[len(waits)*99/100]))
	return nil
}
