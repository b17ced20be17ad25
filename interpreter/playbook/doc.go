// Package playbook decodes playbooks: from YAML to a model, which package check checks. The model is in model.go, and
// of policies in decode_retry.go; tables in decode_*.go have the keys. They also document the language. The package
// also has the traits and specs of tools (tools.go).
package playbook
