package expr

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
)

// resultMeter measures the result of an evaluation and converts it to plain JSON.
// It counts the bytes of the compact form, including repeated shared parts, so it
// visits at most as many parts as bytes are allowed.
type resultMeter struct {
	m    *evaluation
	left int
}

// finish measures the result of an expression or string. For a string it counts
// the bytes without the quotes and escapes of JSON.
func (m *evaluation) finish(v any) (any, error) {
	mt := resultMeter{m: m, left: m.result}
	if s, ok := v.(string); ok {
		return v, mt.take(len(s))
	}
	out, _, err := mt.plain(v, 0)
	return out, err
}

func (mt *resultMeter) take(n int) error {
	mt.left -= n
	if mt.left < 0 {
		return costf("the result exceeds the size limit")
	}
	return nil
}

// plain returns v with times as text and numbers in the types of [FromJSON]. It
// reports whether the value changed; unchanged values are shared.
func (mt *resultMeter) plain(v any, depth int) (any, bool, error) {
	if depth > maxNesting {
		return nil, false, costf("the result is nested too deeply")
	}
	switch x := v.(type) {
	case nil:
		return nil, false, mt.take(4)
	case string:
		return v, false, mt.take(jsonSize(x))
	case bool:
		return v, false, mt.take(len(strconv.FormatBool(x)))
	case int:
		var buf [20]byte
		return v, false, mt.take(len(strconv.AppendInt(buf[:0], int64(x), 10)))
	case float64:
		if _, err := finite(x); err != nil {
			return nil, false, err
		}
		var buf [32]byte
		return v, false, mt.take(len(appendFloat(buf[:0], x)))
	case []any:
		return mt.list(x, depth)
	case map[string]any:
		return mt.object(x, depth)
	case *File:
		_, _, err := mt.object(x.members, depth)
		return v, false, err
	case time.Time:
		s := timeText(x)
		return s, true, mt.take(len(s) + 2)
	}
	return mt.converted(v, depth)
}

// converted handles a value that normalize converts and whose parts may need it too.
func (mt *resultMeter) converted(v any, depth int) (any, bool, error) {
	n, err := mt.m.normalize(v)
	if err != nil {
		return nil, false, err
	}
	if big, ok := n.(json.Number); ok {
		return big, true, mt.take(len(big))
	}
	out, _, err := mt.plain(n, depth)
	return out, true, err
}

func (mt *resultMeter) list(v []any, depth int) (any, bool, error) {
	if err := mt.take(2 + max(0, len(v)-1)); err != nil {
		return nil, false, err
	}
	if v == nil {
		return []any{}, true, nil
	}
	out := v
	for i, e := range v {
		p, changed, err := mt.plain(e, depth+1)
		if err != nil {
			return nil, false, err
		}
		if !changed {
			continue
		}
		if len(out) > 0 && &out[0] == &v[0] {
			out = append([]any(nil), v...)
		}
		out[i] = p
	}
	return out, len(out) > 0 && &out[0] != &v[0], nil
}

func (mt *resultMeter) object(v map[string]any, depth int) (any, bool, error) {
	if err := mt.take(2 + 2*len(v) - min(1, len(v))); err != nil {
		return nil, false, err
	}
	if v == nil {
		return map[string]any{}, true, nil
	}
	var changes map[string]any
	for k, e := range v {
		if err := mt.take(jsonSize(k)); err != nil {
			return nil, false, err
		}
		p, changed, err := mt.plain(e, depth+1)
		if err != nil {
			return nil, false, err
		}
		if changed {
			if changes == nil {
				changes = make(map[string]any)
			}
			changes[k] = p
		}
	}
	if changes == nil {
		return v, false, nil
	}
	out := make(map[string]any, len(v))
	maps.Copy(out, v)
	maps.Copy(out, changes)
	return out, true, nil
}
