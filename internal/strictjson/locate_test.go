package strictjson_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	const document = "{\n\t\"näme\" : \"é\", \"a/b~c\": 1,\r\n  \"steps\": [ {\"id\":\n 7}, [1,2] , null ],\n\"\": {}}"
	pointers := map[string]strictjson.Place{
		"":                {Line: 1, Column: 1},
		"/näme":           {Line: 2, Column: 11},
		"/a~1b~0c":        {Line: 2, Column: 25},
		"/steps":          {Line: 3, Column: 12},
		"/steps/0":        {Line: 3, Column: 14},
		"/steps/0/id":     {Line: 4, Column: 2},
		"/steps/1/1":      {Line: 4, Column: 9},
		"/steps/2":        {Line: 4, Column: 14},
		"/":               {Line: 5, Column: 5},
		"/steps/0/uses":   {Line: 3, Column: 14}, // missing: where it would be
		"/steps/9/with/x": {Line: 3, Column: 12},
		"/missing":        {Line: 1, Column: 1},
	}
	var asked []string
	for pointer := range pointers {
		asked = append(asked, pointer)
	}
	got := map[string]strictjson.Place{}
	for i, place := range strictjson.Locate([]byte(document), asked) {
		got[asked[i]] = place
	}
	if diff := cmp.Diff(pointers, got); diff != "" {
		t.Error(diff)
	}
	if got := strictjson.Locate([]byte(`[1, 2]`), []string{"/1", "/1"}); got[0] != got[1] || got[0] != (strictjson.Place{Line: 1, Column: 5}) {
		t.Errorf("the same pointer twice is at %v", got)
	}
	if got := strictjson.Locate([]byte(`{"a": `), []string{"/a/b"}); len(got) != 1 {
		t.Errorf("a document that ends early has the places %v", got)
	}
}
