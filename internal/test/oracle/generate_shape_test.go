package oracle_test

import (
	"maps"
	"math/rand/v2"
)

// shapes has some sinks change the rows that they write: a field of the row comes from another one, which is left out, and one is added
// where there is no table.
func (g *generator) shapes() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 11))
	for _, s := range g.round.book.steps {
		for _, each := range s.sinks() {
			if g.one(3) {
				g.shape(each)
			}
		}
	}
}

func (g *generator) shape(to *sink) {
	column, renamed := "v", "raw_"+to.place
	if to.table != "" {
		column = "doc"
	}
	to.args = renamedIn(to.args, column, renamed)
	to.fields, to.exclude = fields{{column, name("row." + renamed)}}, []string{renamed}
	if to.table == "" && g.one(2) {
		to.fields = append(to.fields, field{"beside", pick[any](g, 7, mixed{"page ", name("_retry.page")})})
	}
}

// renamedIn are rows in which a field has another name.
func renamedIn(args any, from, to string) any {
	switch args := args.(type) {
	case fields:
		all := fields{}
		for _, f := range args {
			if f.name == from {
				f.name = to
			}
			all = append(all, f)
		}
		return all
	case []any:
		all := make([]any, len(args))
		for i, each := range args {
			all[i] = renamedIn(each, from, to)
		}
		return all
	}
	return args
}

// shaped are the rows that a sink writes of those that it is given.
func (s *sink) shaped(args any, sc scope) (any, error) {
	if s.fields == nil {
		return args, nil
	}
	if list, many := args.([]any); many {
		all := make([]any, len(list))
		for i, each := range list {
			row, err := s.shaped(each, sc)
			if err != nil {
				return nil, err
			}
			all[i] = row
		}
		return all, nil
	}
	row := maps.Clone(args.(map[string]any))
	for _, f := range s.fields {
		value, err := render(f.value, sc.with(scope{"row": args}))
		if err != nil {
			return nil, err
		}
		row[f.name] = value
	}
	for _, gone := range s.exclude {
		delete(row, gone)
	}
	return row, nil
}
