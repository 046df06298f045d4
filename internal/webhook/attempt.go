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
	// depthHeader carries the number of ancestors of the run that an event is about.
	// A receiver that starts a run because of the event passes it on.
	depthHeader = "X-Service-Depth"
	// requestTimeout limits how long an endpoint may take to respond, because it holds one of the
	// places for requests meanwhile.
	requestTimeout = 15 * time.Second
	// maxResponse is how many bytes of a response are stored.
	maxResponse = 4 << 10
	// A webhook whose attempts have all failed for disableAfter, and at least minFailures times, is
	// disabled.
	disableAfter = 5 * 24 * time.Hour
	minFailures  = 20
)

// attempt sends a delivery once. An error means that a shutdown interrupted the
// attempt, which then does not count.
func (s *Sender) attempt(ctx context.Context, d OutgoingDelivery) (Report, error) {
	begun, started := clock.Now(), clock.Monotonic()
	report := Report{
		OutgoingDelivery: d, Attempt: Attempt{Number: d.Attempts + 1, At: begun}, FailingSince: begun.Add(-disableAfter), Failures: minFailures,
		FailingReason: "all attempts failed for 5 days",
		Entry:         auth.Actor{Workspace: auth.Workspace{ID: d.WorkspaceID}, Type: audit.ActorSystem}.AuditEntry("webhook.disabled", "webhook", d.WebhookID, nil),
	}
	failpoint.Hit(failpoint.BeforeOutboxSend, d.DeliveryID)
	response, err := s.send(ctx, d, begun)
	report.Attempt.Duration = time.Since(started).Truncate(time.Microsecond)
	if err != nil && ctx.Err() != nil {
		return report, ctx.Err()
	}
	report.evaluate(response, err)
	if report.Status == Delivered {
		failpoint.Hit(failpoint.After2xxBeforeMark, d.DeliveryID)
	}
	return report, nil
}

func (s *Sender) send(ctx context.Context, d OutgoingDelivery, now time.Time) (*egress.Response, error) {
	secrets, err := s.secrets(ctx, d, now)
	if err != nil {
		return nil, err
	}
	header := http.Header{
		"Content-Type":       {"application/json"},
		"X-Service-Event":    {string(d.Event.Type)},
		"X-Service-Delivery": {d.DeliveryID},
	}
	if d.RunID != "" {
		header.Set(depthHeader, strconv.Itoa(d.Event.Depth))
	}
	sign(header, secrets, d.Event.ID, now, d.Event.Body)
	return s.client.Do(ctx, egress.Request{
		Workspace: d.WorkspaceID, Method: http.MethodPost, URL: d.URL, Header: header, Body: d.Event.Body,
		MaxBody: maxResponse, Truncate: true, Timeout: requestTimeout,
	})
}

// secrets returns the secrets to sign with, the current one first.
func (s *Sender) secrets(ctx context.Context, d OutgoingDelivery, now time.Time) ([]string, error) {
	ref := SecretRef(Webhook{ID: d.WebhookID, WorkspaceID: d.WorkspaceID})
	current, err := s.vault.Open(ctx, ref, d.Secret)
	if err != nil {
		return nil, fmt.Errorf("decrypt the signing secret: %w", err)
	}
	secrets := []string{string(current)}
	if d.OldSecret != nil && d.OldUntil != nil && now.Before(*d.OldUntil) {
		old, err := s.vault.Open(ctx, ref, d.OldSecret)
		if err != nil {
			return nil, fmt.Errorf("decrypt the previous signing secret: %w", err)
		}
		secrets = append(secrets, string(old))
	}
	return secrets, nil
}

// evaluate decides what a response, or the lack of one, means for the delivery.
func (r *Report) evaluate(response *egress.Response, err error) {
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
		a.Status, a.Response = response.Status, printable(response.Body)
		if response.Status >= 200 && response.Status < 300 {
			r.Status = Delivered
			return
		}
		a.Error = fmt.Sprintf("the endpoint returned %d %s", response.Status, http.StatusText(response.Status))
		overloaded = response.Status == http.StatusTooManyRequests
		asked = response.RetryAfter(a.At)
		if response.Status == http.StatusGone {
			r.Disable = "the endpoint returned 410 Gone"
		}
	}
	delay, again := nextDelay(a.Number, overloaded, asked)
	if !again {
		r.Status = Exhausted
		return
	}
	next := clock.Steady().Add(delay).Truncate(time.Microsecond)
	r.Status, r.NextAt = Pending, &next
}

// printable returns the beginning of a response as valid text.
func printable(body []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(body), "\x00", "\uFFFD"), "\uFFFD")
}
