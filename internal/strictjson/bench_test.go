package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/strictjson"
)

type benchStep struct {
	ID     string            `json:"id"`
	Action string            `json:"action"`
	Needs  []string          `json:"needs,omitempty"`
	With   map[string]string `json:"with,omitempty"`
	Retry  *struct {
		Attempts int     `json:"attempts"`
		Backoff  float64 `json:"backoff"`
	} `json:"retry,omitempty"`
}

type benchBody struct {
	Name    string      `json:"name"`
	State   string      `json:"state"`
	Version int64       `json:"version"`
	Steps   []benchStep `json:"steps"`
}

// benchInput is a request body of about 1 KiB.
func benchInput() []byte {
	var steps []string
	for i := range 5 {
		steps = append(steps, fmt.Sprintf(`{
  "id": "step_%d", "action": "http.request", "needs": ["step_0"],
  "with": {"url": "https://example.com/hook", "method": "POST", "body": "{\"n\": %d}"},
  "retry": {"attempts": 3, "backoff": 1.5}
}`, i, i))
	}
	return []byte(`{"name": "nightly report", "state": "active", "version": 12, "steps": [` +
		strings.Join(steps, ", ") + `]}`)
}

// benchPayload is a free-form document of about 1 MiB.
func benchPayload() []byte {
	var b strings.Builder
	b.WriteString(`{"items": [`)
	for i := 0; b.Len() < 1<<20; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"id": %d, "email": "person%d@example.com", "score": %d.25, "tags": ["a", "b"], `+
			`"note": "The quick brown fox jumps over the lazy dog, again and again.", "active": true}`, i, i, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func bench(b *testing.B, data []byte, decode func([]byte) error) {
	b.Helper()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStruct1KiB(b *testing.B) {
	data := benchInput()
	b.Run("strict", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return strictjson.Decode(data, new(benchBody)) })
	})
	b.Run("std", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return json.Unmarshal(data, new(benchBody)) })
	})
}

func BenchmarkAny1KiB(b *testing.B) {
	data := benchInput()
	b.Run("strict", func(b *testing.B) {
		bench(b, data, func(data []byte) error { _, err := strictjson.DecodeAny(data); return err })
	})
	b.Run("std", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return json.Unmarshal(data, new(any)) })
	})
}

func BenchmarkRaw1MiB(b *testing.B) {
	type body struct {
		Input json.RawMessage `json:"input"`
	}
	data := []byte(`{"input": ` + string(benchPayload()) + `}`)
	b.Run("strict", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return strictjson.Decode(data, new(body)) })
	})
	b.Run("std", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return json.Unmarshal(data, new(body)) })
	})
}

func BenchmarkAny1MiB(b *testing.B) {
	data := benchPayload()
	exact := []byte(strings.Replace(string(data), `"id": 0`, `"id": 9007199254740993`, 1))
	b.Run("strict", func(b *testing.B) {
		bench(b, data, func(data []byte) error { _, err := strictjson.DecodeAny(data); return err })
	})
	b.Run("strict-64bit", func(b *testing.B) {
		bench(b, exact, func(data []byte) error { _, err := strictjson.DecodeAny(data); return err })
	})
	b.Run("std", func(b *testing.B) {
		bench(b, data, func(data []byte) error { return json.Unmarshal(data, new(any)) })
	})
}

func BenchmarkCheck1MiB(b *testing.B) {
	data := benchPayload()
	b.Run("strict", func(b *testing.B) { bench(b, data, strictjson.Check) })
	b.Run("std-valid", func(b *testing.B) {
		bench(b, data, func(data []byte) error {
			if !json.Valid(data) {
				return fmt.Errorf("not valid")
			}
			return nil
		})
	})
}

// BenchmarkCheckManyKeys has objects just big enough for the hash table.
func BenchmarkCheckManyKeys(b *testing.B) {
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprintf(`"key_%d":%d`, i, i))
	}
	one := "{" + strings.Join(keys, ",") + "}"
	bench(b, []byte("["+strings.Repeat(one+",", 4000)+one+"]"), strictjson.Check)
}
