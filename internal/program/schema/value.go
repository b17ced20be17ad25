package schema

import (
	"reprise/interpreter/playbook"
)

const (
	template  = `\{\{`
	notEmpty  = `\S`
	duration  = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	onlyBrace = `^\s*\{\{[\s\S]*\}\}\s*$`
)

// text is text that is known before the run.
func text() node { return node{"type": "string", "not": node{"pattern": template}} }

func name() node {
	return node{"type": "string", "pattern": notEmpty, "not": node{"pattern": template}}
}

func list(items node, least int) node {
	return node{"type": "array", "items": items, "minItems": least}
}

func types(names ...string) node { return node{"type": names} }

// value is what may be behind a key of a section.
func (g *generator) value(s playbook.Section, key playbook.Key) node {
	value := g.kind(s, key)
	if len(key.Accepted) > 0 && key.Kind != playbook.WordChoice && key.Kind != playbook.WordChoices {
		value = anyOf(value, node{"enum": key.Accepted})
	}
	if key.Nullable {
		value = anyOf(value, node{"type": "null"})
	}
	return value
}

func (g *generator) kind(s playbook.Section, key playbook.Key) node {
	if plain, ok := plainKinds[key.Kind]; ok {
		return plain(key)
	}
	section := ref(key.Of)
	switch key.Kind {
	case playbook.WordTool:
		return anyOf(node{"enum": g.callable(s.Name)}, node{"type": "string", "pattern": template}, ref("tool"))
	case playbook.WordSection:
		return section
	case playbook.WordSections:
		return list(section, 0)
	case playbook.WordSome:
		return anyOf(section, list(section, 1))
	case playbook.WordPolicies:
		return anyOf(list(section, 0), types("boolean", "integer", "object"))
	case playbook.WordKeyed:
		return anyOf(section, list(name(), 1))
	case playbook.WordLists:
		return node{"type": "object", "additionalProperties": list(section, 1)}
	case playbook.WordTargets:
		return anyOf(name(), section, list(anyOf(name(), section), 0))
	}
	return node{}
}

// plainKinds are the kinds that name no section.
var plainKinds = map[playbook.WordKind]func(playbook.Key) node{
	playbook.WordText:       func(playbook.Key) node { return text() },
	playbook.WordName:       func(playbook.Key) node { return name() },
	playbook.WordChoice:     func(key playbook.Key) node { return node{"enum": key.Accepted} },
	playbook.WordChoices:    choices,
	playbook.WordBoolean:    func(playbook.Key) node { return types("boolean") },
	playbook.WordInteger:    func(key playbook.Key) node { return bounded("integer", key) },
	playbook.WordNumber:     func(key playbook.Key) node { return bounded("number", key) },
	playbook.WordDuration:   func(playbook.Key) node { return durations(node{"type": "number", "minimum": 0}) },
	playbook.WordLimit:      func(playbook.Key) node { return durations(node{"type": "number", "exclusiveMinimum": 0}) },
	playbook.WordLength:     func(playbook.Key) node { return types("string", "number") },
	playbook.WordScalar:     func(playbook.Key) node { return types("string", "number", "boolean") },
	playbook.WordCondition:  func(playbook.Key) node { return types("string", "number", "boolean") },
	playbook.WordValue:      func(playbook.Key) node { return node{} },
	playbook.WordCollection: func(playbook.Key) node { return orTemplate("array", "object") },
	playbook.WordTextValue:  func(playbook.Key) node { return types("string", "number", "boolean") },
	playbook.WordConnection: func(playbook.Key) node { return node{"type": "string", "minLength": 1} },
	playbook.WordMapValue:   func(playbook.Key) node { return orTemplate("object", "null") },
	playbook.WordMap:        func(playbook.Key) node { return types("object", "null") },
	playbook.WordLabels: func(playbook.Key) node {
		return node{"type": []string{"object", "null"}, "additionalProperties": text()}
	},
	playbook.WordConstants: func(playbook.Key) node { return types("object", "null") },
	playbook.WordTexts:     func(playbook.Key) node { return list(name(), 0) },
	playbook.WordNames:     func(playbook.Key) node { return anyOf(name(), list(name(), 0)) },
}

func choices(key playbook.Key) node {
	one := node{"enum": key.Accepted}
	return anyOf(one, list(one, 1))
}

func bounded(kind string, key playbook.Key) node {
	value := node{"type": kind}
	if key.Least != nil {
		value["minimum"] = *key.Least
	}
	if key.Most != nil {
		value["maximum"] = *key.Most
	}
	return value
}

func durations(seconds node) node {
	return anyOf(seconds, node{"type": "string", "pattern": duration})
}

// orTemplate is a value of some types, or one template that gives it.
func orTemplate(kinds ...string) node {
	return anyOf(types(kinds...), node{"type": "string", "pattern": onlyBrace})
}
