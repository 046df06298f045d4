package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// definitionPatch is the part of a patch that describes what the workflow does.
type definitionPatch struct {
	Triggers *[]workflow.Trigger                `json:"triggers"`
	Steps    *[]workflow.Step                   `json:"steps"`
	Settings strictjson.Optional[settingsPatch] `json:"settings"`
}

type settingsPatch struct {
	Timeout     strictjson.Optional[string]                    `json:"timeout"`
	Concurrency strictjson.Optional[workflow.ConcurrencyPatch] `json:"concurrency"`
}

func (p definitionPatch) patch() workflow.Patch {
	out := workflow.Patch{Triggers: p.Triggers, Steps: p.Steps}
	if p.Settings.Set {
		settings := p.Settings.Value
		out.Settings = &workflow.SettingsPatch{
			SetTimeout: settings.Timeout.Set, Timeout: settings.Timeout.Value, SetConcurrency: settings.Concurrency.Set,
		}
		if p.Settings.Null {
			out.Settings.Replace = &workflow.Settings{}
		}
		if settings.Concurrency.Set && !settings.Concurrency.Null {
			out.Settings.Concurrency = &settings.Concurrency.Value
		}
	}
	return out
}

type updateWorkflowRequest struct {
	ID      string        `path:"id"`
	IfMatch string        `header:"If-Match"`
	Body    workflowPatch `body:"required" yaml:"ok"`
}

type workflowPatch struct {
	definitionPatch
	Name        *string                                         `json:"name"`
	Description strictjson.Optional[string]                     `json:"description"`
	State       *workflow.State                                 `json:"state"`
	Layout      strictjson.Optional[map[string]*workflow.Point] `json:"layout"`
	Pinned      strictjson.Optional[map[string]json.RawMessage] `json:"pinned"`
	Source      strictjson.Optional[string]                     `json:"source"`
	// written is the body itself, when it is YAML.
	written []byte
}

func (p *workflowPatch) keep(body []byte) { p.written = body }

// source is what the patch says of the text of the workflow. A body that is
// YAML is the text, unless it has one inside.
func (p *workflowPatch) source() (*workflow.SourcePatch, error) {
	switch {
	case p.Source.Null:
		return &workflow.SourcePatch{}, nil
	case p.Source.Set:
		text, err := workflow.ReadText(p.Source.Value)
		return &workflow.SourcePatch{Text: text}, err
	case p.written == nil || len(p.written) > workflow.MaxSource:
		return nil, nil
	}
	text, err := workflow.ReadText(string(p.written))
	if err != nil {
		// As a patch it is fine; it is only not a text that can be kept.
		return nil, nil //nolint:nilerr // see above
	}
	return &workflow.SourcePatch{Text: text, Offered: true}, nil
}

func (s *Server) updateWorkflow(ctx context.Context, in *updateWorkflowRequest) (*reply, error) {
	body := &in.Body
	patch := body.patch()
	var err error
	if patch.Source, err = body.source(); err != nil {
		return nil, err
	}
	patch.Name, patch.State = body.Name, body.State
	if body.Description.Set {
		patch.SetDescription = true
		if !body.Description.Null {
			patch.Description = &body.Description.Value
		}
	}
	if body.Layout.Set {
		patch.Layout = &workflow.LayoutPatch{Clear: body.Layout.Null, Places: body.Layout.Value}
	}
	if body.Pinned.Set {
		patch.Pinned = &workflow.PinsPatch{Clear: body.Pinned.Null, Values: body.Pinned.Value}
	}
	w, err := s.Workflows.Update(ctx, actorOf(ctx), in.ID, patch, workflow.ParseMatch(in.IfMatch))
	if err != nil {
		if body.Source.Set && patch.Source != nil {
			err = patch.Source.Text.Locate(err)
		}
		return nil, err
	}
	return showWorkflow(w), nil
}
