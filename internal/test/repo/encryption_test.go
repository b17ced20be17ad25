package repo_test

import (
	"go/ast"
	"strings"
	"testing"
)

// plainTransports are the functions that reach a Temporal server or read one of its histories past internal/base/codec, with the
// files that may call them and why.
var plainTransports = map[string]map[string]string{
	"client.Dial":                             nil,
	"client.DialContext":                      {"internal/base/connect/connect.go": "it adds the codec"},
	"client.NewLazyClient":                    nil,
	"client.NewClient":                        nil,
	"client.NewClientFromExisting":            nil,
	"client.NewClientFromExistingWithContext": nil,
	"client.NewNamespaceClient":               nil,
	"client.HistoryFromJSON":                  {"internal/program/replay/find.go": "what it reads is decoded after it"},
	"grpc.NewClient":                          nil,
	"grpc.Dial":                               nil,
	"grpc.DialContext":                        nil,
	"converter.NewCodecDataConverter":         nil,
}

// TestEachTransportEncrypts: whatever reaches a Temporal server does so through the codec, so that code behind it may take default
// converters: it only sees plain values.
func TestEachTransportEncrypts(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, file := range goSources(t, func(name string) bool { return isCode(name) && !strings.HasPrefix(name, "internal/test/") }) {
		ast.Inspect(file.tree, func(node ast.Node) bool {
			selector, isSelector := node.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			of, isName := selector.X.(*ast.Ident)
			if !isName {
				return true
			}
			name := of.Name + "." + selector.Sel.Name
			files, watched := plainTransports[name]
			if _, allowed := files[file.name]; watched && !allowed {
				t.Errorf("%s: %s reaches Temporal without encryption; use connect.Dial", file.at(node), name)
			}
			used[name+" "+file.name] = watched
			return true
		})
	}
	for name, files := range plainTransports {
		for file := range files {
			if !used[name+" "+file] {
				t.Errorf("%s no longer uses %s: delete the exception", file, name)
			}
		}
	}
}
