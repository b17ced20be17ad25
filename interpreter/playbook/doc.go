// Package playbook reads playbooks: YAML to a model (decode_*.go, model.go), checks of the
// model (check_*.go), and the traits and specs of tools (tools.go). The tables that decode
// also document the language.
package playbook
