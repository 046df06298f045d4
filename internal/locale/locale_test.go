package locale_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stepmill/stepmill/internal/locale"
)

// The results are those of Intl.NumberFormat in Node.js; see generate.mjs.
func TestLikeIntl(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/intl.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Locale, Number, Currency string
		Min, Max                 *int
		Ungrouped, Code          bool
		Want                     string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		l := locale.Find(c.Locale)
		if l == nil {
			t.Fatalf("%s is not known", c.Locale)
		}
		digits := locale.Digits{Max: 3, Ungrouped: c.Ungrouped}
		if c.Max != nil {
			digits.Min, digits.Max = *c.Min, *c.Max
		}
		got := l.Number(c.Number, digits)
		if c.Currency != "" {
			digits.Min, digits.Max = locale.Decimals(c.Currency), locale.Decimals(c.Currency)
			symbol := l.Symbol(c.Currency)
			if c.Code {
				symbol = c.Currency
			}
			got = l.Amount(c.Number, symbol, digits)
		}
		if got != c.Want {
			t.Errorf("%+v: %q, want %q", c, got, c.Want)
		}
	}
	if len(cases) < 1000 {
		t.Errorf("only %d cases", len(cases))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for tag, same := range map[string]string{
		"DE_ch": "de-CH", "de-US": "de", "de-Latn-DE": "de", "zh-hant-TW": "zh-Hant", "en-US-posix": "en",
	} {
		if got := locale.Find(tag); got == nil || got != locale.Find(same) {
			t.Errorf("%s is not %s", tag, same)
		}
	}
	for _, tag := range []string{"", "-", "xx", "deutsch", "e", "de/CH", "de-" + string(make([]byte, 40))} {
		if locale.Find(tag) != nil {
			t.Errorf("%q is a locale", tag)
		}
	}
}
