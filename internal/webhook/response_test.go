package webhook_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/webhook"
)

// reported is an outbox that announces each recorded attempt.
type reported struct {
	*fakeOutbox
	told chan webhook.Report
}

func (o reported) ReportDelivery(ctx context.Context, r webhook.Report) error {
	err := o.fakeOutbox.ReportDelivery(ctx, r)
	o.told <- r
	return err
}

// once sends one delivery to a real receiver and returns what was recorded.
func once(t *testing.T, url string) webhook.Report {
	t.Helper()
	client := egress.New(egress.Config{
		Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, UserAgent: "Stepmill/1.2.3",
	})
	defer client.Close()
	o := reported{newOutbox(), make(chan webhook.Report, 1)}
	o.send(o.hook("ws_1", "wh_1", url), "") // not about a run
	_, stop := launch(t, o, client)
	defer stop()
	select {
	case r := <-o.told:
		return r
	case <-time.After(time.Minute):
		t.Fatal("nothing was recorded")
		panic("unreachable")
	}
}

// TestReceivers checks the outcome of what real receivers do over a real connection.
func TestReceivers(t *testing.T) {
	t.Parallel()
	const chunk = 64 << 10
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		then   webhook.Status
		says   string // how the error begins
		kept   string
	}{
		{"says nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 204, webhook.Delivered, "", ""},
		{"says something", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thank you") }, 200, webhook.Delivered, "", "thank you"},
		{"talks without end", func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				if _, err := io.WriteString(w, strings.Repeat("x", chunk)); err != nil {
					return
				}
			}
		}, 200, webhook.Delivered, "", strings.Repeat("x", webhook.KeptAnswer)},
		{"says what is no text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a\x00b\xff\xfec")) }, 200, webhook.Delivered, "", "a\uFFFDb\uFFFDc"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		},
			308, webhook.Pending, "the endpoint returned 308 Permanent Redirect", ""},
		{"resets the connection", func(w http.ResponseWriter, _ *http.Request) { hijack(t, w, "") }, 0, webhook.Pending, "the connection to 127.0.0.1 was lost", ""},
		{"does not speak HTTP", func(w http.ResponseWriter, _ *http.Request) { hijack(t, w, "220 mail.example ESMTP\r\n\r\n") },
			0, webhook.Pending, "127.0.0.1 did not send a valid HTTP response", ""},
		{"stops in the middle", func(w http.ResponseWriter, _ *http.Request) {
			hijack(t, w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		},
			0, webhook.Pending, "the connection to 127.0.0.1 was lost", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.answer)
			t.Cleanup(server.Close)
			r := once(t, server.URL+"/hook")
			if r.Status != test.then || r.Attempt.Status != test.status || r.Attempt.Response != test.kept ||
				!strings.HasPrefix(r.Attempt.Error, test.says) || (r.Attempt.Error == "") != (test.says == "") {
				t.Errorf("recorded is %s, %+v", r.Status, r.Attempt)
			}
			if (r.NextAt != nil) != (test.then == webhook.Pending) {
				t.Errorf("the next attempt is at %v", r.NextAt)
			}
		})
	}
}

// hijack writes to the raw connection and resets it.
func hijack(t *testing.T, w http.ResponseWriter, say string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(conn, say)
	if say == "" {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_ = conn.Close()
}

// A request has the documented headers and no others.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Header]
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body.Store(string(text))
		got.Store(&r.Header)
	}))
	t.Cleanup(server.Close)
	r := once(t, server.URL+"/hook")
	header := *got.Load()
	for _, name := range []string{"Webhook-Timestamp", "Webhook-Signature", "X-Service-Signature"} {
		if header.Get(name) == "" {
			t.Errorf("missing header %s", name)
		}
		header.Del(name)
	}
	want := http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"Stepmill/1.2.3"}, "Content-Length": {"7"}, "Accept-Encoding": {"gzip"},
		"X-Service-Event": {"run.started"}, "X-Service-Delivery": {r.OutgoingDelivery.DeliveryID}, "Webhook-Id": {r.OutgoingDelivery.Event.ID},
	}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if body.Load() != string(r.OutgoingDelivery.Event.Body) {
		t.Errorf("the body is %q, want %q", body.Load(), r.OutgoingDelivery.Event.Body)
	}
}
