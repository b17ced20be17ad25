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

// textNode returns the schema of a text without templates, which is known before the run.
func textNode() node { return node{"type": "string", "not": node{"pattern": template}} }

func nameNode() node {
	return node{"type": "string", "pattern": notEmpty, "not": node{"pattern": template}}
}

func listNode(items node, least int) node {
	return node{"type": "array", "items": items, "minItems": least}
}

func typesNode(names ...string) node { return node{"type": names} }

// valueNode returns the schema of the values that a key of a section accepts.
func (g *generator) valueNode(s playbook.Section, key playbook.Key) node {
	value := g.kindNode(s, key)
	if len(key.Accepted) > 0 && key.Kind != playbook.WordChoice && key.Kind != playbook.WordChoices {
		value = anyOf(value, node{"enum": key.Accepted})
	}
	if key.Nullable {
		value = anyOf(value, node{"type": "null"})
	}
	return value
}

func (g *generator) kindNode(s playbook.Section, key playbook.Key) node {
	if plain, ok := plainKinds[key.Kind]; ok {
		return plain(key)
	}
	section := sectionRef(key.Of)
	switch key.Kind {
	case playbook.WordTool:
		return anyOf(node{"enum": g.callableTools(s.Name)}, node{"type": "string", "pattern": template}, sectionRef("tool"))
	case playbook.WordSection:
		return section
	case playbook.WordSections:
		return listNode(section, 0)
	case playbook.WordSome:
		return anyOf(section, listNode(section, 1))
	case playbook.WordPolicies:
		return anyOf(listNode(section, 0), typesNode("boolean", "integer", "object"))
	case playbook.WordKeyed:
		return anyOf(section, listNode(nameNode(), 1))
	case playbook.WordLists:
		return node{"type": "object", "additionalProperties": listNode(section, 1)}
	case playbook.WordTargets:
		return anyOf(nameNode(), section, listNode(anyOf(nameNode(), section), 0))
	}
	return node{}
}

// plainKinds are the kinds of keys whose values are not sections.
var plainKinds = map[playbook.WordKind]func(playbook.Key) node{
	playbook.WordText:       func(playbook.Key) node { return textNode() },
	playbook.WordName:       func(playbook.Key) node { return nameNode() },
	playbook.WordChoice:     func(key playbook.Key) node { return node{"enum": key.Accepted} },
	playbook.WordChoices:    choicesNode,
	playbook.WordBoolean:    func(playbook.Key) node { return typesNode("boolean") },
	playbook.WordInteger:    func(key playbook.Key) node { return boundedNode("integer", key) },
	playbook.WordNumber:     func(key playbook.Key) node { return boundedNode("number", key) },
	playbook.WordDuration:   func(playbook.Key) node { return durationNode(node{"type": "number", "minimum": 0}) },
	playbook.WordLimit:      func(playbook.Key) node { return durationNode(node{"type": "number", "exclusiveMinimum": 0}) },
	playbook.WordLength:     func(playbook.Key) node { return typesNode("string", "number") },
	playbook.WordScalar:     func(playbook.Key) node { return typesNode("string", "number", "boolean") },
	playbook.WordCondition:  func(playbook.Key) node { return typesNode("string", "number", "boolean") },
	playbook.WordValue:      func(playbook.Key) node { return node{} },
	playbook.WordCollection: func(playbook.Key) node { return orTemplate("array", "object") },
	playbook.WordTextValue:  func(playbook.Key) node { return typesNode("string", "number", "boolean") },
	playbook.WordConnection: func(playbook.Key) node { return node{"type": "string", "minLength": 1} },
	playbook.WordMapValue:   func(playbook.Key) node { return orTemplate("object", "null") },
	playbook.WordMap:        func(playbook.Key) node { return typesNode("object", "null") },
	playbook.WordLabels: func(playbook.Key) node {
		return node{"type": []string{"object", "null"}, "additionalProperties": textNode()}
	},
	playbook.WordConstants: func(playbook.Key) node { return typesNode("object", "null") },
	playbook.WordTexts:     func(playbook.Key) node { return listNode(nameNode(), 0) },
	playbook.WordNames:     func(playbook.Key) node { return anyOf(nameNode(), listNode(nameNode(), 0)) },
}

func choicesNode(key playbook.Key) node {
	one := node{"enum": key.Accepted}
	return anyOf(one, listNode(one, 1))
}

func boundedNode(kind string, key playbook.Key) node {
	value := node{"type": kind}
	if key.Least != nil {
		value["minimum"] = *key.Least
	}
	if key.Most != nil {
		value["maximum"] = *key.Most
	}
	return value
}

func durationNode(seconds node) node {
	return anyOf(seconds, node{"type": "string", "pattern": duration})
}

// orTemplate returns the schema of a value with one of some types, or a template that produces one.
func orTemplate(kinds ...string) node {
	return anyOf(typesNode(kinds...), node{"type": "string", "pattern": onlyBrace})
}
