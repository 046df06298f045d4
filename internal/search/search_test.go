package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/uid"
)

const id = "wf_01m7f8njhve3pt0yekqqme4qcm"

func parse(t *testing.T, text string) search.Query {
	t.Helper()
	q, err := search.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

func TestRank(t *testing.T) {
	t.Parallel()
	entry := search.Entry{ID: id, Name: "Sync orders to the ERP", Text: []string{"Runs nightly.\nOwned by Finance.", "schedule"}}
	named := func(name string) search.Entry { return search.Entry{ID: id, Name: name} }
	for _, tc := range []struct {
		query string
		entry search.Entry
		want  search.Rank
	}{
		{"Sync orders to the ERP", entry, search.Exact},
		{"  sync   ORDERS to the erp ", entry, search.Exact},
		{"sync orders", entry, search.NamePrefix},
		{"syn", entry, search.NamePrefix},
		{"orders", entry, search.WordPrefix},
		{"erp ord", entry, search.WordPrefix},
		{"order order", entry, search.WordPrefix},
		{"rders", entry, search.InName},
		{"orders rp", entry, search.InName},
		{"nightly", entry, search.Elsewhere},
		{"orders finance", entry, search.Elsewhere},
		{"schedule sync", entry, search.Elsewhere},
		{"orders invoice", entry, search.None},
		{"nightlyx", entry, search.None},

		{"daily report", named("Daily \t report"), search.Exact},
		{"orders", named("sync-orders"), search.WordPrefix},
		{"orders", named("sync_orders"), search.WordPrefix},
		{"ders", named("orders: leaders, ders"), search.WordPrefix},
		{"-orders", named("sync-orders"), search.InName},
		{"100%", named("At 100% load"), search.WordPrefix},
		{"%", named("At 100 load"), search.None},
		{"_", named("At 100 load"), search.None},
		{`\`, named(`C:\temp`), search.WordPrefix},
		{"*", named("anything"), search.None},

		{"GRÖSSE PRÜFEN", named("Größe prüfen"), search.Exact},
		{"größe", named("GRÖSSE PRÜFEN"), search.NamePrefix},
		{"ПРИВЕТ", named("привет, мир"), search.NamePrefix},
		{"мир", named("Привет, Мир"), search.WordPrefix},
		{"ΣΊΣΥΦΟΣ", named("Σίσυφος"), search.Exact},
		{"cafe\u0301", named("Café"), search.Exact},
		{"注文", named("毎日の注文"), search.InName},
		{"erp", named("ＥＲＰ"), search.Exact},

		{id, entry, search.Exact},
		{strings.ToUpper(id), entry, search.Exact},
		{"wf_01m7f8", entry, search.NamePrefix},
		{"wf_", entry, search.NamePrefix},
		{"wf", entry, search.None},
		{"01m7f8", entry, search.None},
		{"wf_01m7f8 sync", entry, search.None},
		{"wf_sync", named("wf_sync"), search.Exact},
	} {
		if got := parse(t, tc.query).Rank(tc.entry); got != tc.want {
			t.Errorf("%q in %q: rank %v, want %v", tc.query, tc.entry.Name, got, tc.want)
		}
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	var words []string
	for i := range search.MaxWords + 1 {
		words = append(words, fmt.Sprintf("%02d", i))
	}
	for _, tc := range []struct{ query, want string }{
		{"", "word"},
		{" \t\u00a0", "word"},
		{strings.Repeat("ä", search.MaxLength+1), "200 characters"},
		{strings.Join(words, " "), "50 words"},
	} {
		if _, err := search.Parse(tc.query); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%q): %v, want an error with %q", tc.query, err, tc.want)
		}
	}
	parse(t, strings.Repeat("ä", search.MaxLength))
	parse(t, strings.Repeat("a ", search.MaxLength/2))
	parse(t, strings.Join(words[1:], " "))
}

func TestIDPrefix(t *testing.T) {
	t.Parallel()
	const whole = "run_01m7f9hb3mevr88y42wdngtn4v"
	for query, want := range map[string]string{
		whole:                    whole,
		" " + whole + " ":        whole,
		strings.ToUpper(whole):   whole,
		"run_01m7":               "run_01m7",
		"run_":                   "run_",
		"run":                    "",
		"run_01m7 x":             "",
		"run_01m7%":              "",
		"run_01m7\x00":           "",
		"run_l":                  "", // l is not in the alphabet of ids
		whole + "0":              "",
		"wf_01m7":                "",
		"my run_01m7":            "",
		"run_01m7f9hb3mevr88y4~": "",
	} {
		if got, ok := parse(t, query).IDPrefix(uid.Run); got != want || ok != (want != "") {
			t.Errorf("IDPrefix of %q = %q, %t; want %q", query, got, ok, want)
		}
	}
}

func TestBestKeepsTheBestMatches(t *testing.T) {
	t.Parallel()
	names := []string{"orders b", "Reorders", "orders", "Orders A", "sync orders", "orders b"}
	for i := range 200 {
		names = append(names, fmt.Sprintf("reorders %03d", i))
	}
	q := parse(t, "orders")
	want := []string{"orders/2", "Orders A/3", "orders b/0", "orders b/5", "sync orders/4", "Reorders/1", "reorders 000/6"}
	for _, reversed := range []bool{false, true} {
		best := search.NewBest[string](len(want))
		order := make([]int, len(names))
		for i := range order {
			order[i] = i
		}
		if reversed {
			slices.Reverse(order)
		}
		for _, i := range order {
			e := search.Entry{ID: fmt.Sprintf("wf_%03d", i), Name: names[i]}
			best.Add(q.Rank(e), e, fmt.Sprintf("%s/%d", names[i], i))
		}
		if diff := cmp.Diff(want, best.Items()); diff != "" {
			t.Errorf("reversed %t (-want +got):\n%s", reversed, diff)
		}
	}
	none := search.NewBest[string](3)
	none.Add(search.None, search.Entry{Name: "x"}, "x")
	if got := none.Items(); got == nil || len(got) != 0 {
		t.Errorf("without a match: %v, want an empty list", got)
	}
}

func FuzzRank(f *testing.F) {
	f.Add("sync orders", "Sync orders", "nightly")
	f.Add("GRÖSSE", "Größe", "\xff")
	f.Add("wf_0", "İstanbul ﬁn", "ΐ")
	f.Fuzz(func(t *testing.T, query, name, text string) {
		q, err := search.Parse(query)
		if err != nil {
			return
		}
		rank := q.Rank(search.Entry{ID: id, Name: name, Text: []string{text}})
		own := q.Rank(search.Entry{Name: query})
		if own != search.Exact {
			t.Errorf("%q does not find itself: %v", query, own)
		}
		if rank < search.Exact || rank > search.None {
			t.Errorf("%q in %q: rank %v", query, name, rank)
		}
	})
}

func BenchmarkRank(b *testing.B) {
	q, err := search.Parse("invoice customer zzz")
	if err != nil {
		b.Fatal(err)
	}
	e := search.Entry{ID: id, Name: "Invoice the customer number 4711", Text: []string{strings.Repeat("Sends an invoice to the customer. ", 10)}}
	for b.Loop() {
		q.Rank(e)
	}
}
