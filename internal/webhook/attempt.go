package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/failpoint"
)

const (
	// depthHeader tells how many runs stand above the one that an event is about.
	// A receiver that starts a run because of it passes the header on.
	depthHeader = "X-Service-Depth"
	// patience is how long an endpoint may take to answer.
	patience = 15 * time.Second
	// keptAnswer is how much of its answer is kept.
	keptAnswer = 4 << 10
	// A webhook that has done nothing but fail for so long, and at least so
	// often, is disabled.
	longestFailing = 5 * 24 * time.Hour
	leastFailures  = 20
)

// attempt sends a parcel once. An error means that the attempt does not count:
// the end of the service has cut it short.
func (c *Courier) attempt(ctx context.Context, p Parcel) (Report, error) {
	begun := clock.Now()
	report := Report{
		Parcel: p, Attempt: Attempt{Number: p.Attempts + 1, At: begun}, FailingSince: begun.Add(-longestFailing), Failures: leastFailures,
		GaveUp: "nothing but failures for 5 days",
		Entry:  auth.Actor{Workspace: auth.Workspace{ID: p.WorkspaceID}, Type: audit.ActorSystem}.Did("webhook.disabled", "webhook", p.WebhookID, nil),
	}
	failpoint.Hit(failpoint.BeforeOutboxSend, p.DeliveryID)
	answer, err := c.send(ctx, p, begun)
	report.Attempt.Duration = clock.Now().Sub(begun)
	if err != nil && ctx.Err() != nil {
		return report, ctx.Err()
	}
	report.judge(answer, err)
	if report.Status == Delivered {
		failpoint.Hit(failpoint.After2xxBeforeMark, p.DeliveryID)
	}
	return report, nil
}

func (c *Courier) send(ctx context.Context, p Parcel, now time.Time) (*egress.Response, error) {
	secrets, err := c.secrets(ctx, p, now)
	if err != nil {
		return nil, err
	}
	header := http.Header{
		"Content-Type":       {"application/json"},
		"X-Service-Event":    {string(p.Event.Type)},
		"X-Service-Delivery": {p.DeliveryID},
	}
	if p.RunID != "" {
		header.Set(depthHeader, strconv.Itoa(p.Event.Depth))
	}
	sign(header, secrets, p.Event.ID, now, p.Event.Body)
	return c.client.Do(ctx, egress.Request{
		Workspace: p.WorkspaceID, Method: http.MethodPost, URL: p.URL, Header: header, Body: p.Event.Body,
		MaxBody: keptAnswer, Truncate: true, Timeout: patience,
	})
}

// secrets are those to sign with, the one in force first.
func (c *Courier) secrets(ctx context.Context, p Parcel, now time.Time) ([]string, error) {
	ref := SecretRef(Webhook{ID: p.WebhookID, WorkspaceID: p.WorkspaceID})
	current, err := c.vault.Open(ctx, ref, p.Secret)
	if err != nil {
		return nil, fmt.Errorf("open the signing secret: %w", err)
	}
	secrets := []string{string(current)}
	if p.OldSecret != nil && p.OldUntil != nil && now.Before(*p.OldUntil) {
		old, err := c.vault.Open(ctx, ref, p.OldSecret)
		if err != nil {
			return nil, fmt.Errorf("open the signing secret before: %w", err)
		}
		secrets = append(secrets, string(old))
	}
	return secrets, nil
}

// judge decides what an answer, or its absence, means for the delivery.
func (r *Report) judge(answer *egress.Response, err error) {
	a := &r.Attempt
	var (
		overloaded bool
		asked      time.Duration
	)
	switch failure, ok := errors.AsType[*egress.Error](err); {
	case ok:
		a.Error = failure.Message
		overloaded = failure.Code == egress.TimedOut
	case err != nil:
		a.Error = "Stepmill could not send the request"
	default:
		a.Status, a.Answer = answer.Status, printable(answer.Body)
		if answer.Status >= 200 && answer.Status < 300 {
			r.Status = Delivered
			return
		}
		a.Error = fmt.Sprintf("the endpoint answered %d %s", answer.Status, http.StatusText(answer.Status))
		overloaded = answer.Status == http.StatusTooManyRequests
		asked = answer.RetryAfter(a.At)
		if answer.Status == http.StatusGone {
			r.Disable = "the endpoint answered 410 Gone"
		}
	}
	delay, again := nextDelay(a.Number, overloaded, asked)
	if !again {
		r.Status = Exhausted
		return
	}
	next := a.At.Add(a.Duration + delay).UTC().Truncate(time.Microsecond)
	r.Status, r.NextAt = Pending, &next
}

// printable is the beginning of an answer as text.
func printable(body []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(body), "\x00", "\uFFFD"), "\uFFFD")
}
