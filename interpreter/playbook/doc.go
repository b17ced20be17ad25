// Package playbook reads playbooks: YAML to a model (decode_*.go, model.go). Checks of the
// model are package check. Here are also the traits and specs of tools (tools.go). The tables that decode
// also document the language.
package playbook
