package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/transport"
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
	// yamlBody is the body itself if it is YAML.
	yamlBody []byte
}

// SetYAML receives a body in YAML.
func (p *workflowPatch) SetYAML(body []byte) { p.yamlBody = body }

// source returns the change of the workflow's source text. A YAML body is itself
// the source, unless it has a source member.
func (p *workflowPatch) source() (*workflow.SourcePatch, error) {
	switch {
	case p.Source.Null:
		return &workflow.SourcePatch{}, nil
	case p.Source.Set:
		text, err := workflow.ReadText(p.Source.Value)
		return &workflow.SourcePatch{Text: text}, err
	case p.yamlBody == nil || len(p.yamlBody) > workflow.MaxSource:
		return nil, nil
	}
	text, err := workflow.ReadText(string(p.yamlBody))
	if err != nil {
		// It is valid as a patch, but not as a source text to store.
		return nil, nil //nolint:nilerr // see above
	}
	return &workflow.SourcePatch{Text: text, Optional: true}, nil
}

func (p *workflowPatch) fullPatch() (workflow.Patch, error) {
	patch := p.patch()
	var err error
	if patch.Source, err = p.source(); err != nil {
		return workflow.Patch{}, err
	}
	patch.Name, patch.State = p.Name, p.State
	if p.Description.Set {
		patch.SetDescription = true
		if !p.Description.Null {
			patch.Description = &p.Description.Value
		}
	}
	if p.Layout.Set {
		patch.Layout = &workflow.LayoutPatch{Clear: p.Layout.Null, Places: p.Layout.Value}
	}
	if p.Pinned.Set {
		patch.Pinned = &workflow.PinsPatch{Clear: p.Pinned.Null, Values: p.Pinned.Value}
	}
	return patch, nil
}

// locate adds line and column to problems if the definition comes from the source
// text.
func (p *workflowPatch) locate(patch workflow.Patch, err error) error {
	if p.Source.Set && patch.Source != nil {
		return patch.Source.Text.Locate(err)
	}
	return err
}

func (h *workflows) update(ctx context.Context, in *updateWorkflowRequest) (*transport.Reply, error) {
	patch, err := in.Body.fullPatch()
	if err != nil {
		return nil, err
	}
	w, err := h.workflows.Update(ctx, transport.Actor(ctx), in.ID, patch, etag.ParseMatch(in.IfMatch))
	if err != nil {
		return nil, in.Body.locate(patch, err)
	}
	return showWorkflow(w), nil
}
