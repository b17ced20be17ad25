package playbook

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Hidden replaces a secret value.
const Hidden = "***"

func secretSteps(steps []*Step) []string {
	return lists.Pick(steps, func(step *Step) (string, bool) { return step.Name, step.Secret && step.Name != "" })
}

// HasSecrets reports whether any step has a secret result.
func (pb *Playbook) HasSecrets() bool { return len(pb.secrets) > 0 }

// SecretsNamed returns the secret steps whose results an expression with these references can read, each once. An
// expression that reads all steps, or a computed one, can read all.
func (pb *Playbook) SecretsNamed(refs []expression.Ref) []string {
	var names []string
	for _, ref := range refs {
		names = lists.AddUnique(names, pb.SecretsOf(ref)...)
	}
	return names
}

// SecretsOf returns the secret steps whose results a reference, or what it contains, includes.
func (pb *Playbook) SecretsOf(ref expression.Ref) []string {
	switch {
	case len(pb.secrets) == 0:
		return nil
	case slices.Contains(pb.secrets, ref.Root):
		return []string{ref.Root}
	case ref.Root != "steps":
		return nil
	case IsAllSteps(ref):
		return pb.secrets
	}
	name, _ := ref.Path[0].(string)
	if !slices.Contains(pb.secrets, name) {
		return nil
	}
	if len(ref.Path) > 1 {
		if key, constant := ref.Path[1].(string); constant && key != "data" {
			return nil // its status, error and meta are not secret
		}
	}
	return []string{name}
}

// IsAllSteps reports whether a reference is `steps` without the name of a step.
func IsAllSteps(ref expression.Ref) bool {
	return ref.Root == "steps" && len(ConstantMembers(ref.Path)) == 0
}

// withoutSecret cuts a path at the result of a secret step, whose members cannot be read.
func (pb *Playbook) withoutSecret(path []string) []string {
	const result = 3 // steps, its name, data
	if len(path) > result && path[0] == "steps" && path[2] == "data" && slices.Contains(pb.secrets, path[1]) {
		return path[:result]
	}
	return path
}

// NewTemplate returns a value made of a text with expressions, as in a playbook. It belongs to no file.
func NewTemplate(text string) (*Node, []expression.Problem) {
	template, problems := expression.ParseTemplate(text)
	return &Node{Raw: text, Template: template, Kind: TemplateNode}, problems
}
