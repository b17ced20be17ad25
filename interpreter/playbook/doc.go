// Package playbook decodes playbooks: from YAML to a model (decode_*.go, model.go), which package check checks. It
// also has the traits and specs of tools (tools.go). The tables that drive the decoding also document the language.
package playbook
