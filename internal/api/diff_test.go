package api_test

import "testing"

func TestDiff(t *testing.T) {
	// Version 2 has the step set, version 3 more, version 4 is version 2 again.
	given := func(w *testWorkspace) {
		setupWorkflow(w)
		w.patch("wf", `{"steps": [`+waitStep+`, {"id": "lines", "foreach": "[1]", "steps": [
			{"id": "set", "uses": "data.set", "with": {"values": {"a": 2, "b": null}}}]}],
			"triggers": [{"id": "by_hand", "type": "manual"}], "settings": {"timeout": "2h"}}`)
		w.call("POST", "/v1/workflows/$wf/versions/2/restore", "").wantStatus(200)
	}
	runScenarios(t, []scenario{
		{
			name: "what changed from one version to another", setup: given,
			request: "GET /v1/workflows/$wf/versions/2/diff?to=3", scope: "read", status: 200,
			members: "workflow_id from to identical steps triggers settings",
			contains: `{"workflow_id": "$wf", "from": 2, "to": 3, "identical": false,
				"steps": [
					{"change": "added", "step_id": "pause", "from_block": null, "to_block": null, "from": null, "to": {"id": "pause", "needs": []}, "fields": []},
					{"change": "added", "step_id": "lines", "from": null, "to": {"id": "lines", "foreach": "[1]", "needs": ["pause"]}, "fields": []},
					{"change": "moved", "step_id": "set", "from_block": null, "to_block": "lines",
						"from": {"id": "set", "with": {"values": {"a": 1}}}, "to": {"id": "set", "with": {"values": {"a": 2}}},
						"fields": [{"field": "/with/values/a", "from": 1, "to": 2}, {"field": "/with/values/b", "to": null}]}
				],
				"triggers": [{"change": "added", "trigger_id": "by_hand", "from": null, "to": {"id": "by_hand", "type": "manual"}, "fields": []}],
				"settings": [{"field": "/timeout", "to": "2h"}]}`,
			after: func(w *testWorkspace, a *response) {
				steps := a.object()["steps"].([]any)
				wantKeys(w.t, steps[1].(map[string]any)["to"].(map[string]any), "id needs foreach")
				fields := steps[2].(map[string]any)["fields"].([]any)
				wantKeys(w.t, fields[1].(map[string]any), "field to")
			},
		},
		{
			name: "the way back is the mirror", setup: given,
			request: "GET /v1/workflows/$wf/versions/3/diff?to=2", status: 200,
			contains: `{"from": 3, "to": 2, "steps": [{"change": "removed", "step_id": "pause", "to": null}, {"change": "removed", "step_id": "lines"},
				{"change": "moved", "step_id": "set", "from_block": "lines", "to_block": null}],
				"triggers": [{"change": "removed"}], "settings": [{"field": "/timeout", "from": "2h"}]}`,
		},
		{
			name: "compared is with the current version unless another is named", setup: given,
			request: "GET /v1/workflows/$wf/versions/1/diff", status: 200, contains: `{"from": 1, "to": 4, "steps": [{"change": "added", "step_id": "set"}]}`,
		},
		{
			name: "versions that are the same are identical", setup: given,
			request: "GET /v1/workflows/$wf/versions/2/diff?to=4", status: 200,
			contains: `{"identical": true, "steps": [], "triggers": [], "settings": []}`,
		},
		{
			name: "a version that does not exist is version_not_found", setup: given,
			request: "GET /v1/workflows/$wf/versions/9/diff", status: 404, code: "version_not_found", message: "9",
		},
		{
			name: "one to compare with that does not exist too", setup: given,
			request: "GET /v1/workflows/$wf/versions/1/diff?to=8", status: 404, code: "version_not_found", message: "8",
		},
		{
			name:    "a version of an unknown workflow is workflow_not_found",
			request: "GET /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm/versions/1/diff?to=2", status: 404, code: "workflow_not_found",
		},
		{name: "a version that is not a number is rejected", setup: given, request: "GET /v1/workflows/$wf/versions/0/diff", status: 400, code: "invalid_request", message: "n:"},
		{name: "a version to compare with that is not a number is rejected", setup: given, request: "GET /v1/workflows/$wf/versions/1/diff?to=0", status: 400, code: "invalid_request", message: "to:"},
		{name: "nor is it a word", setup: given, request: "GET /v1/workflows/$wf/versions/1/diff?to=current", status: 400, code: "invalid_request", message: "to:"},
		{name: "comparing needs the scope read", setup: given, request: "GET /v1/workflows/$wf/versions/1/diff", scope: "write", status: 403, code: "insufficient_scope"},
	})
}
