package playbook

import (
	"cmp"
	"slices"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// dataWord is what older playbooks call the result in sinks, vars and next,
// and the page in next_call. The list knows it in no place.
const dataWord = "data"

// dataRef is one use of it.
type dataRef struct {
	pos    source.Position
	newer  string
	node   *Node
	offset int // in the node's text, in runes
}

// dataRefs are the uses of data that have another name now, in the order of
// the file.
func (pb *Playbook) dataRefs() []dataRef {
	if _, isKey := pb.Workload[dataWord]; isKey {
		return nil // which may be meant
	}
	seen := map[source.Position]bool{} // of values that aliases repeat
	var refs []dataRef
	look := func(newer string, nodes ...*Node) {
		for _, node := range nodes {
			node.eachRef(func(scalar *Node, offset int) {
				if pos := scalar.Position(offset); scalar.origin == nil && !seen[pos] {
					seen[pos] = true
					refs = append(refs, dataRef{pos, newer, scalar, offset})
				}
			})
		}
	}
	for _, call := range pb.actions() {
		if call.sink != nil {
			look("result", append(entryValues(call.action.Fields), call.action.Args)...)
		}
	}
	for _, step := range pb.Steps {
		look("result", entryValues(step.Vars)...)
		for _, route := range step.Next {
			look("result", route.When)
			for _, target := range route.Targets {
				look("result", target.Args)
			}
		}
		for _, policy := range step.Retry {
			if next := policy.Then.NextCall; next != nil {
				look("response", next.Args, next.Params, next.Headers, next.URL, next.Method, next.Body)
			}
		}
	}
	slices.SortFunc(refs, func(a, b dataRef) int {
		return cmp.Or(cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	return refs
}

// eachRef calls visit for every use of data below the node.
func (n *Node) eachRef(visit func(scalar *Node, offset int)) {
	if n == nil {
		return
	}
	n.eachScalar(func(scalar *Node) {
		for _, ref := range scalar.Refs() {
			if ref.Root == dataWord {
				visit(scalar, ref.Offset)
			}
		}
	})
}

// dataWords gives data its name where older playbooks had the word.
func (m *migrator) dataWords(book *Playbook) {
	original := book.dataRefs()
	if len(original) == 0 {
		return
	}
	file, root := m.current()
	if root == nil {
		return
	}
	current, _ := Decode(file)
	if current == nil {
		return
	}
	comments := commentLines(root)
	places := scalarPlaces(root)
	e := newExtent(file)
	var edits []edit
	refs := current.dataRefs()
	slices.Reverse(refs) // so that offsets in values hold
	for _, ref := range refs {
		start, scalar := file.Offset(ref.pos), places[ref.node.Pos]
		if start < 0 || scalar == nil {
			continue
		}
		value := []rune(scalar.Value)
		scalar.Value = string(value[:ref.offset]) + ref.newer + string(value[ref.offset+len(dataWord):])
		edits = append(edits, edit{start, start + len(dataWord), ref.newer})
	}
	ok := len(edits) > 0 && m.accept(applyAll(e.text, edits), root, comments)
	for _, ref := range original {
		if ok {
			m.changed(ref.pos, dataWord+" becomes "+ref.newer)
		} else {
			m.problem(ref.pos, CodeNotMigrated, dataWord+" cannot be rewritten here; write "+ref.newer+" by hand")
		}
	}
}

// scalarPlaces are the scalars of a tree by where they stand.
func scalarPlaces(root *yaml.Node) map[source.Position]*yaml.Node {
	places := map[source.Position]*yaml.Node{}
	eachScalar(root, func(n *yaml.Node) { places[position(n)] = n })
	return places
}
