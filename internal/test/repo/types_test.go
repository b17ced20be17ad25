package repo_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// usual are names that say nothing without their package, as http.Server, reflect.Kind and
// csv.Reader do in the library of Go.
var usual = []string{
	"Column", "Entry", "Error", "Filter", "Kind", "Limits", "Name", "Options", "Reader", "Registry", "Report",
	"Request", "Resources", "Response", "Result", "Server", "State", "Status", "Tool",
}

// shared are other names that several packages have, and the concept that they have in common.
var shared = map[string]string{
	"Attempt":      "one execution of a request: who makes it, and what try shows of it",
	"Command":      "what the recipient is to do: a run by its people, a host by its call",
	"Decision":     "what was decided: of a run by its queue, of an attempt by its policies",
	"Dialect":      "a SQL: its name, and what differs in it",
	"Ledger":       "what is done already: the writes of calls, the partitions of a playbook",
	"Loop":         "a loop as its playbook has it, and as its status does",
	"Page":         "a page of a document and of a result; both are what the trade calls so",
	"Part":         "a part of an expression with its value",
	"Policy":       "a policy as its playbook has it, and as try shows it",
	"Problem":      "what is wrong with what an author or a client has written",
	"Schedule":     "a schedule as its playbook has it, and as the server does",
	"Scope":        "what the names of an expression mean",
	"Sink":         "a sink as its playbook has it, and as try shows it",
	"Span":         "a time in which something ran",
	"StartedError": "there is a run with the ID; serve knows no client of Temporal",
	"Step":         "a step as its playbook, its status and its recording have it",
	"Style":        "how a text looks at a terminal, how a scalar is written in YAML, as yaml.v3 has it",
	"Telemetry":    "what activities record, and what records it",
}

// TestNamesOfTypes: a noun is one concept. An exported type of another package has its name only where
// that is a usual one, or the same concept.
func TestNamesOfTypes(t *testing.T) {
	t.Parallel()
	declared := map[string][]string{}
	for _, file := range goSources(t, isProgram) {
		for _, name := range exportedTypes(file.tree) {
			declared[name] = append(declared[name], path.Dir(file.name))
		}
	}
	require.Greater(t, len(declared), 400)
	for name, packages := range declared {
		if len(packages) > 1 && shared[name] == "" && !slices.Contains(usual, name) {
			t.Errorf("%s is a type of %s; name each concept differently, or say in shared which one they have in common", name, strings.Join(packages, " and "))
		}
	}
	for _, name := range slices.Concat(usual, slices.Collect(maps.Keys(shared))) {
		require.Greater(t, len(declared[name]), 1, "%s is no longer a type of several packages; take it off the list", name)
	}
}

// isProgram reports whether a file is part of a program, and not of its tests.
func isProgram(name string) bool {
	return isCode(name) && !strings.HasPrefix(name, "internal/test/") && !strings.HasPrefix(name, "activities/tooltest/")
}

// exportedTypes are those that a file declares. Another name of a type is none.
func exportedTypes(file *ast.File) []string {
	var names []string
	for _, one := range file.Decls {
		types, ok := one.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			if of := spec.(*ast.TypeSpec); of.Name.IsExported() && !of.Assign.IsValid() {
				names = append(names, of.Name.Name)
			}
		}
	}
	return names
}

// TestTypesAreNouns: the name of a type says what its values are, and not what has happened to them.
func TestTypesAreNouns(t *testing.T) {
	t.Parallel()
	for _, file := range goSources(t, isProgram) {
		for _, one := range file.tree.Decls {
			types, ok := one.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				if strings.HasSuffix(name, "ed") && !strings.HasSuffix(name, "eed") {
					t.Errorf("%s declares %s: name it by what it is, such as ParentAttempt instead of Called", file.name, name)
				}
			}
		}
	}
}
