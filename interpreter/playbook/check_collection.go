package playbook

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// checkCollection refuses iterations that need all of their loop's collection:
// every child would carry it, and a loop of n elements n times n (docs/concepts/loops.md).
func checkCollection(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop == nil || step.Loop.Collection == nil || step.Action == nil {
			continue
		}
		collections := c.pb.dataPaths(step.Loop, step.Loop.Collection)
		for _, node := range c.pb.CallNodes(step) {
			if node.Statement() != nil {
				c.collectionIn(step, node, collections)
			}
			for scalar := range node.Templates() {
				c.collectionIn(step, scalar, collections)
			}
		}
	}
}

func (c *checker) collectionIn(step *Step, scalar *Node, collections [][]string) {
	for _, ref := range scalar.Refs() {
		path := c.pb.dataPath(step.Loop, ref)
		if path == nil {
			continue
		}
		for _, collection := range collections {
			if len(path) <= len(collection) && slices.Equal(path, collection[:len(path)]) {
				c.errorf(scalar.Position(ref.Offset), codeCollectionInIteration,
					"%q holds the whole collection of the loop, which an iteration cannot have; use the element %q, _loop.size, "+
						"or a part of it that does not hold the collection", strings.Join(append([]string{ref.Root}, ConstantMembers(ref.Path)...), "."), step.Loop.Element)
				return
			}
		}
	}
}

func (pb *Playbook) dataPaths(loop *Loop, node *Node) [][]string {
	var paths [][]string
	for _, ref := range node.Refs() {
		if path := pb.dataPath(loop, ref); path != nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// dataPath is DataPath for names inside a loop; nil for names that are no data
// of the run, such as the element.
func (pb *Playbook) dataPath(loop *Loop, ref expression.Ref) []string {
	if _, isWord := findWord(ref.Root); ref.Root == loop.Element || (isWord && !dataRoot(ref.Root)) {
		return nil
	}
	return pb.DataPath(ref)
}

func dataRoot(name string) bool { return name == "workload" || name == "vars" || name == "steps" }

// DataPath says where in the data of a run a name points: below workload, vars
// or steps, as far as its members are constant names.
func (pb *Playbook) DataPath(ref expression.Ref) []string {
	members := ConstantMembers(ref.Path)
	switch {
	case dataRoot(ref.Root):
		return pb.withoutSecret(append([]string{ref.Root}, members...))
	case pb.Step(ref.Root) != nil:
		return pb.withoutSecret(append([]string{"steps", ref.Root, "data"}, members...))
	}
	return append([]string{"workload", ref.Root}, members...)
}

// ConstantMembers keeps the path of a name up to the first index.
func ConstantMembers(path []any) []string {
	var members []string
	for _, key := range path {
		name, ok := key.(string)
		if !ok {
			break
		}
		members = append(members, name)
	}
	return members
}
