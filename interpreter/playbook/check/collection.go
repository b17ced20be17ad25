package check

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// checkCollection reports iterations that use their loop's whole collection: every child would get a copy of it, so
// a loop over n elements would send n² (docs/concepts/loops.md).
func checkCollection(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop == nil || step.Loop.Collection == nil || step.Action == nil {
			continue
		}
		collections := dataPathsIn(c.pb, step.Loop, step.Loop.Collection)
		for _, node := range c.pb.CallNodes(step) {
			for scalar := range node.AllNodes() {
				if scalar.Template != nil || scalar.Statement() != nil {
					c.collectionIn(step, scalar, collections)
				}
			}
		}
	}
}

func (c *checker) collectionIn(step *playbook.Step, scalar *playbook.Node, collections [][]string) {
	for _, ref := range scalar.Refs() {
		path := dataPathIn(c.pb, step.Loop, ref)
		if path == nil {
			continue
		}
		for _, collection := range collections {
			if len(path) <= len(collection) && slices.Equal(path, collection[:len(path)]) {
				c.Errorf(scalar.Position(ref.Offset), codeCollectionInIteration,
					"%q contains the whole collection of the loop, which iterations do not receive; use the element %q, _loop.size, "+
						"or a value that contains only a part of it", strings.Join(append([]string{ref.Root}, playbook.ConstantMembers(ref.Path)...), "."), step.Loop.Element)
				return
			}
		}
	}
}

func dataPathsIn(pb *playbook.Playbook, loop *playbook.Loop, node *playbook.Node) [][]string {
	return lists.Pick(node.Refs(), func(ref expression.Ref) ([]string, bool) {
		path := dataPathIn(pb, loop, ref)
		return path, path != nil
	})
}

// dataPathIn returns the DataPath of a name inside a loop; nil for names that are not data of the run, such as the
// element.
func dataPathIn(pb *playbook.Playbook, loop *playbook.Loop, ref expression.Ref) []string {
	if w, isWord := findWord(ref.Root); ref.Root == loop.Element || (isWord && !w.row && !playbook.IsDataRoot(ref.Root)) {
		return nil
	}
	return pb.DataPath(ref)
}
