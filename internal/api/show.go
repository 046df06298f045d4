package api

import "encoding/json"

// idRequest is a request about what has the id in the path.
type idRequest struct {
	ID string `path:"id"`
}

// showAll converts each item of a list. It never returns nil.
func showAll[T, W any](items []T, show func(T) W) []W {
	out := make([]W, len(items))
	for i, item := range items {
		out[i] = show(item)
	}
	return out
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orObject(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// rawOrNull returns null for a missing value.
func rawOrNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
