package workflow

import (
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/release"
)

// Nodes knows the nodes that can execute runs.
type Nodes interface {
	// OldestNode returns the live node of the oldest release.
	OldestNode(ctx context.Context) (OldestNode, error)
}

// OldestNode is the live node of the oldest release.
type OldestNode struct {
	Name, Version string
	// Level is the number of its release.
	Level int
}

// fileWord stands for a reference to a file among the words of a definition: in the schema
// of a release that does not know files, it is an object like any other.
const fileWord = "$file"

// level returns the release that a compiled definition needs.
func (c *compiler) level(d Definition) (int, error) {
	text, err := d.Canonical()
	if err != nil {
		return 0, err
	}
	words := slices.Clip(c.words)
	if len(d.Files) > 0 {
		words = append(words, fileWord)
	}
	return release.Level(text, words)
}

// requireNodes refuses a definition that some node cannot execute, because the nodes are
// being upgraded.
func (s *Service) requireNodes(ctx context.Context, d Definition) error {
	if s.nodes == nil {
		return nil
	}
	oldest, err := s.nodes.OldestNode(ctx)
	if err != nil {
		return err
	}
	if oldest.Level >= d.Level {
		return nil
	}
	return fault.New(fault.UpgradeInProgress,
		"the workflow uses features of Stepmill %s, and the node %q still runs %s: upgrade or stop this node, then save the workflow again",
		release.Name(d.Level), oldest.Name, oldest.Version)
}
