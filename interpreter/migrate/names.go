package migrate

import (
	"slices"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// migrateNames replaces the word data in older playbooks by its current names.
func (m *migrator) migrateNames(book *playbook.Playbook) {
	original := book.OlderNames()
	if len(original) == 0 {
		return
	}
	ok := m.rewriteText(func(e extent, root *yaml.Node) (edits []edit, some bool) {
		places := scalarPlaces(root)
		current, _ := playbook.Decode(e.file)
		names := current.OlderNames()
		slices.Reverse(names) // from the end, so that offsets in values remain valid
		for _, name := range names {
			start, scalar := e.file.ByteOffset(name.Pos), places[name.Scalar]
			if start < 0 || scalar == nil {
				continue
			}
			value := []rune(scalar.Value)
			scalar.Value = string(value[:name.Offset]) + name.Newer + string(value[name.Offset+len(name.Older):])
			edits = append(edits, edit{start, start + len(name.Older), name.Newer})
		}
		return edits, len(edits) > 0
	})
	for _, name := range original {
		if ok {
			m.addChange(name.Pos, name.Older+" becomes "+name.Newer)
		} else {
			m.addProblem(name.Pos, playbook.CodeNotMigrated, name.Older+" cannot be rewritten here; write "+name.Newer+" by hand")
		}
	}
}

// scalarPlaces returns the scalars of a tree by position.
func scalarPlaces(root *yaml.Node) map[source.Position]*yaml.Node {
	places := map[source.Position]*yaml.Node{}
	yamltree.EachScalar(root, func(n *yaml.Node) { places[yamltree.PositionOf(n)] = n })
	return places
}
