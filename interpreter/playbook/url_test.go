package playbook_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// renderURL renders a url as a step has it.
func renderURL(t *testing.T, template string, scope expression.MapScope) (any, error) {
	t.Helper()
	text := strings.Replace(minimal, "tool: http", "tool: http, url: '"+strings.ReplaceAll(template, "'", "''")+"'", 1)
	require.Contains(t, text, "url")
	pb, found := playbook.Decode(source.NewFile("t.yaml", []byte(text)))
	require.Empty(t, found.Errors(), template)
	return pb.FirstStep().Action.Field("url").RenderURL(scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
}

const minimal = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: t}
workflow:
  - {step: a, tool: http}
`

func TestValuesInAURL(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{
		"api": "http://127.0.0.1:8088", "base": "https://h/v1?key=a&b=", "id": "p1", "sly": "a?b=1&c#d/../e", "up": "..", "dot": ".",
		"port": "h:8443", "n": 7, "list": []any{1, "a"}, "path": "v1/patients", "query": "a=1&b=2", "blank": "", "percent": "50%2F ü",
		"evil": "good.example@evil.example/", "space": "a b", "time": "2026-01-02T03:04:05Z,1", "after": "/v1?x=1",
	}
	for _, c := range []struct{ template, want string }{
		{"{{ api }}/patients/{{ id }}", "http://127.0.0.1:8088/patients/p1"},
		{"{{ api }}/patients/{{ n }}/x", "http://127.0.0.1:8088/patients/7/x"},
		{"{{ api }}/patients/{{ sly }}", "http://127.0.0.1:8088/patients/a%3Fb=1&c%23d%2F..%2Fe"},
		{"{{ api }}/patients/{{ percent }}", "http://127.0.0.1:8088/patients/50%252F%20%C3%BC"},
		{"{{ api }}/{{ path }}", "http://127.0.0.1:8088/v1%2Fpatients"},
		{"{{ api }}/{{ path | raw }}/x", "http://127.0.0.1:8088/v1/patients/x"},
		{"{{ api }}{{ after | raw }}", "http://127.0.0.1:8088/v1?x=1"},
		{"{{ api }}{{ '/a?x=1' if n == 7 else '/b' }}", "http://127.0.0.1:8088/a?x=1"},
		{"{{ api }}{{ ['/a', '/b/c'][1] }}", "http://127.0.0.1:8088/b/c"},
		{"{{ api }}/x?q={{ sly }}", "http://127.0.0.1:8088/x?q=a%3Fb%3D1%26c%23d/../e"},
		{"{{ api }}/x?q={{ space }}&r={{ list }}", "http://127.0.0.1:8088/x?q=a+b&r=%5B1,%22a%22%5D"},
		{"{{ api }}/x?at={{ time }}/{{ time }}", "http://127.0.0.1:8088/x?at=2026-01-02T03:04:05Z,1/2026-01-02T03:04:05Z,1"},
		{"{{ api }}/{{ time }}", "http://127.0.0.1:8088/2026-01-02T03:04:05Z,1"},
		{"{{ api }}/x?{{ query | raw }}", "http://127.0.0.1:8088/x?a=1&b=2"},
		{"{{ api }}/x?q=1#{{ sly }}", "http://127.0.0.1:8088/x?q=1#a%3Fb=1&c%23d%2F..%2Fe"},
		{"{{ base }}{{ sly }}", "https://h/v1?key=a&b=a%3Fb%3D1%26c%23d/../e"},
		{"{{ api }}?x=1", "http://127.0.0.1:8088?x=1"},
		{"  {{ api }}/{{ id }}", "  http://127.0.0.1:8088/p1"},
		{"https://{{ port }}/{{ id }}", "https://h:8443/p1"},
		{"https://api-{{ id }}.example.com/{{ sly }}", "https://api-p1.example.com/a%3Fb=1&c%23d%2F..%2Fe"},
		{"//{{ port }}/{{ path }}", "//h:8443/v1%2Fpatients"},
		{"/patients/{{ sly }}", "/patients/a%3Fb=1&c%23d%2F..%2Fe"},
		{"{{ id }}/{{ sly }}", "p1/a%3Fb=1&c%23d%2F..%2Fe"},
		{"?page={{ sly }}", "?page=a%3Fb%3D1%26c%23d/../e"},
		{"{{ api }}/v{{ up }}2", "http://127.0.0.1:8088/v..2"},
		{"{{ api }}/{{ up | raw }}/x", "http://127.0.0.1:8088/../x"},
		{"{{ sly }}", "a?b=1&c#d/../e"},
		{"{{ sly | raw }}", "a?b=1&c#d/../e"},
	} {
		got, err := renderURL(t, c.template, scope)
		require.NoError(t, err, c.template)
		require.Equal(t, c.want, got, c.template)
	}
	for template, message := range map[string]string{
		"{{ api }}/{{ up }}/x":         `{{ up }} turns a part of the path into "..", which leads elsewhere; if this is intended, write {{ up | raw }}`,
		"{{ api }}/x/{{ dot }}":        `{{ dot }} turns a part of the path into "."`,
		"{{ api }}/x/{{ dot }}?a=b":    `{{ dot }} turns a part of the path into "."`,
		"{{ api }}/{{ dot }}{{ dot }}": `{{ dot }} turns a part of the path into ".."`,
		"{{ api }}/.{{ dot }}/x":       `{{ dot }} turns a part of the path into ".."`,
		"https://{{ evil }}/x":         `{{ evil }} is "good.example@evil.example/", and a value in the host of a URL cannot contain "@"`,
		"https://{{ sly }}/x":          `cannot contain "?"`,
		"https://{{ space }}/x":        `cannot contain " "`,
		"{{ api }}{{ after }}":         `cannot contain "/"; if it also contains a path, write {{ after | raw }}`,
		"/{{ blank }}/evil.example/x":  `{{ blank }} is empty, so what follows it would become the host`,
		"{{ api }}/{{ gone }}":         `{{ gone }} is nil; every part of a URL needs a value`,
	} {
		_, err := renderURL(t, template, scope)
		require.ErrorContains(t, err, message, template)
		var failure *playbook.EvalError
		require.ErrorAs(t, err, &failure)
		require.Positive(t, failure.Pos.Line)
	}
}

// Whatever a value holds, the request goes where the author wrote.
func FuzzValueInAURL(f *testing.F) {
	for _, seed := range []string{"", "..", "a?b=1", "a#b", "a/b", `a\b`, "%2e%2e", "%", "a b", "\x00", "é", "@evil.example", ":80", "&x=1", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := renderURL(t, "https://api.example/v1/{{ v }}/x?a=1&q={{ v }}&z=2", expression.MapScope{"v": value})
		if err != nil {
			require.Contains(t, []string{".", ".."}, value)
			return
		}
		target, err := url.Parse(got.(string))
		require.NoError(t, err)
		require.Equal(t, "https://api.example", target.Scheme+"://"+target.Host)
		require.Equal(t, "/v1/"+value+"/x", target.Path)
		require.Len(t, strings.Split(target.EscapedPath(), "/"), 4)
		require.Equal(t, url.Values{"a": {"1"}, "q": {value}, "z": {"2"}}, target.Query())
		require.Empty(t, target.Fragment)
	})
}
