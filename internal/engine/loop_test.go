package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
)

// numbers returns a payload with a list from 0 to n-1.
func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return `{"items": [` + strings.Join(list, ",") + `]}`
}

func TestLongAndWideWorkflows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	var chain, fan []string
	for i := range 200 {
		previous := "trigger.payload.n"
		if i > 0 {
			previous = fmt.Sprintf("steps.s%d.output.n", i-1)
		}
		chain = append(chain, fmt.Sprintf(`{"id": "s%d", "uses": "data.set", "with": {"values": {"n": "${{ %s + 1 }}"}}}`, i, previous))
		fan = append(fan, fmt.Sprintf(`{"id": "s%d", "needs": [], "uses": "test.effect", "with": {"returns": {"n": %d}}}`, i, i))
	}
	d := w.finished(w.startRun(w.workflow("["+strings.Join(chain, ",")+"]"), `{"n": 0}`))
	if d.Status != run.Succeeded || string(d.Steps[199].Output) != `{"n":200}` {
		t.Errorf("chain: %s, %+v", d.Status, d.Error)
	}
	if d := w.finished(w.startRun(w.workflow("["+strings.Join(fan, ",")+"]"), `{}`)); d.Status != run.Succeeded || len(d.Steps) != 200 {
		t.Errorf("fan: %s, %+v", d.Status, d.Error)
	}
}

func TestLoopOverTenThousandItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "all", "foreach": "trigger.payload.items", "parallel": 10, "steps": [
			{"id": "one", "uses": "data.set", "with": {"values": {"n": "${{ item * 2 }}"}}}]},
		{"id": "sum", "uses": "data.set", "with": {"values": {"n": "${{ sum(map(steps.all.output.items, .n)) }}"}}}]`), numbers(10_000)))
	if d.Status != run.Succeeded || len(d.Steps) != 10_002 {
		t.Fatalf("%s after %d steps: %+v", d.Status, len(d.Steps), d.Error)
	}
	if last := d.Steps[len(d.Steps)-1]; last.Path != "sum" || string(last.Output) != `{"n":99990000}` {
		t.Errorf("%s: %s", last.Path, last.Output)
	}
}

func TestStepLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setPlan(auth.Free)
	w.start(w.store.Leases)
	d := w.finished(w.startRun(w.workflow(`[
		{"id": "rows", "foreach": "trigger.payload.items", "steps": [
			{"id": "cells", "foreach": "trigger.payload.items", "steps": [
				{"id": "cell", "if": "false", "uses": "data.set", "with": {"values": {}}}]}]}]`), numbers(1000)))
	if d.Status != run.Failed || d.Error.Code != run.CodeStepLimit || len(d.Steps) != 1000 {
		t.Fatalf("%s after %d steps: %+v", d.Status, len(d.Steps), d.Error)
	}
	for _, step := range d.Steps {
		if !step.Status.Settled() {
			t.Fatalf("%s is still %s", step.Path, step.Status)
		}
	}
}

func TestParallelLimitsRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.store.Leases)
	id := w.startRun(w.workflow(`[{"id": "all", "foreach": "trigger.payload.items", "parallel": 3, "steps": [
		{"id": "one", "uses": "test.effect", "with": {"gate": "${{ string(item) }}"}}]}]`), numbers(7))
	open := []string{<-w.effects.begun, <-w.effects.begun, <-w.effects.begun}
	for range 4 {
		select {
		case name := <-w.effects.begun:
			t.Fatalf("%s runs beside %v", name, open)
		default:
		}
		w.effects.open(open[0])
		open = append(open[1:], <-w.effects.begun)
	}
	for _, name := range open {
		w.effects.open(name)
	}
	if d := w.finished(id); d.Status != run.Succeeded {
		t.Fatalf("%+v", d.Error)
	}
}

func TestRepeatWaitsAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(w.store.Leases)
		id := w.startRun(w.workflow(`[{"id": "poll", "repeat": {"until": "index == 3", "every": "1h"}, "steps": [
			{"id": "look", "uses": "test.effect", "with": {"call": "look", "returns": {"round": "${{ index }}"}}}]}]`), "{}")
		begun := time.Now()
		for range 3 {
			time.Sleep(50 * time.Minute)
			n.end()
			n = w.start(w.store.Leases)
		}
		time.Sleep(2 * time.Hour)
		d := w.get(id)
		if d.Status != run.Succeeded || w.effects.count("look") != 4 {
			t.Fatalf("%s after %d rounds: %+v", d.Status, w.effects.count("look"), d.Error)
		}
		if took := d.FinishedAt.Sub(begun); took < 3*time.Hour || took > 3*time.Hour+time.Minute {
			t.Errorf("took %s", took)
		}
	})
}
