package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// attack is what one workspace does to the capacity that it shares with another.
type attack struct {
	name string
	runs int
	plan string
	// steps are those of the attacking workflow, victim those of the other.
	steps, victim string
	// began reports whether the attack uses all the capacity that it can get.
	began func() bool
	// compiles makes the attack requests that compile, in place of runs.
	compiles bool
}

// neighbors measures how long a run of one workspace takes while another tries to
// occupy all capacity, compared with an idle server.
func neighbors(ctx context.Context, dir string, length time.Duration) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	endpoint, err := newHolder(ctx)
	if err != nil {
		return err
	}
	defer endpoint.close()
	const script, set = `{"id":"a","uses":"code.js","with":{"code":%q},"timeout":"15m"}`, `{"id":"a","uses":"data.set","with":{"values":{"n":1}}}`
	begun := time.Now()
	fmt.Printf("\n%-44s %9s %9s %9s %9s %9s\n", "a run of one workspace to its end, 1 client", "p50 ms", "p99 ms", "idle p50", "idle p99", "×idle p50")
	for i, a := range []attack{
		{
			name: "a script beside 20 endless scripts", runs: 20, plan: `"plan":"free"`,
			steps: fmt.Sprintf(script, "for (;;) {}"), victim: fmt.Sprintf(script, "return 1"),
			began: func() bool { return time.Since(begun) > 2*time.Second },
		},
		{
			name: "one step beside 300 hanging runs", runs: 300, plan: `"plan":"enterprise","requests_per_minute":1000000`,
			steps:  fmt.Sprintf(`{"id":"a","uses":"http.request","with":{"url":"http://%s/"},"timeout":"15m"}`, endpoint.address),
			victim: set,
			began:  func() bool { return endpoint.calls() >= 192 },
		},
		{
			name: "one step beside costly definitions", plan: `"plan":"free"`, compiles: true,
			steps: set, victim: set,
			began: func() bool { return time.Since(begun) > 2*time.Second },
		},
	} {
		begun = time.Now()
		if err := a.measure(ctx, binary, filepath.Join(dir, fmt.Sprintf("beside-%d", i)), length); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// measure prints the row of an attack, on a server of its own.
func (a attack) measure(ctx context.Context, binary, data string, length time.Duration) error {
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--log-level", "error", "--egress-allow", "127.0.0.0/8")
	if err != nil {
		return err
	}
	defer func() {
		_ = server.cmd.Process.Kill() // a graceful stop would wait for the attack
		_ = server.cmd.Wait()
		_ = os.RemoveAll(data)
	}()
	c := &client{server: server}
	attacker, attacking, err := c.tenant(a.plan, a.steps)
	if err != nil {
		return err
	}
	key, victim, err := c.tenant(`"plan":"enterprise","requests_per_minute":1000000`, a.victim)
	if err != nil {
		return err
	}
	next := func(int, int) request {
		return newRequest("POST", "/v1/workflows/"+victim+"/runs", key, "{}", "Prefer: wait=50")
	}
	idle := load([]string{server.address}, 1, length, 200, next)
	for range a.runs {
		var started any
		if err := c.call("POST", "/v1/workflows/"+attacking+"/runs", attacker, "{}", &started); err != nil {
			return err
		}
	}
	if a.compiles {
		attackCtx, stop := context.WithCancel(ctx)
		var attackers sync.WaitGroup
		defer attackers.Wait()
		defer stop()
		attackers.Go(func() { c.compile(attackCtx, attacker, attacking) })
	}
	if _, err := since(time.Now(), a.began); err != nil {
		return err
	}
	beside := load([]string{server.address}, 1, length, 200, next)
	if err := firstError(idle.err, beside.err); err != nil {
		return err
	}
	fmt.Printf("%-44s %9.2f %9.2f %9.2f %9.2f %9.2f\n", a.name, milliseconds(beside.percentile(0.5)), milliseconds(beside.percentile(0.99)),
		milliseconds(idle.percentile(0.5)), milliseconds(idle.percentile(0.99)), float64(beside.percentile(0.5))/float64(idle.percentile(0.5)))
	return nil
}

// compile sends definitions that take as long to compile as they may, with an
// Idempotency-Key, until the context ends.
func (c *client) compile(ctx context.Context, key, workflow string) {
	const depth = 40
	var sender http.Client
	for n := 0; ctx.Err() == nil; n++ {
		code := fmt.Sprintf("// %d\nreturn %s1%s", n, strings.Repeat("((a=", depth), strings.Repeat(")=>1)", depth))
		body := fmt.Sprintf(`{"definition":{"steps":[{"id":"a","uses":"code.js","with":{"code":%q}}]}}`, code)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.server.address+"/v1/workflows/"+workflow+"/runs", strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", strconv.Itoa(n))
		response, err := sender.Do(request)
		if err != nil {
			return // the server was killed
		}
		_ = response.Body.Close()
	}
}

// tenant makes a workspace with one active workflow and returns its key and the
// workflow.
func (c *client) tenant(plan, steps string) (key, workflow string, err error) {
	var made struct {
		APIKey string `json:"api_key"`
	}
	if err := c.call("POST", "/v1/workspaces", c.server.key, `{"name":"bench",`+plan+`}`, &made); err != nil {
		return "", "", err
	}
	workflow, err = c.workflow(made.APIKey, `{"state":"active","steps":[`+steps+`]}`)
	return made.APIKey, workflow, err
}
